"""Seeds put together: the reference's class, shared kernels, and the choice among workloads."""

from __future__ import annotations

import ast

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.screen import screen
from kernel_smith.proposers.seed.assemble import Input, Specialisation, assemble
from kernel_smith.proposers.seed.reference import read_reference

TASK = '''
"""A task."""
from __future__ import annotations

import math
import random

import torch

TASK = {"workloads": {"a": {}}}
SCALE = 2.0
UNUSED = 3.0


def helper(n):
    # a comment that stays
    return math.sqrt(n) * SCALE


class Part(torch.nn.Module):
    pass


class Model(torch.nn.Module):
    """The reference."""

    def __init__(self, n):
        super(Model, self).__init__()
        self.part = Part()
        self.scale = self._make(n)

    def _make(self, n):
        return helper(n)

    def _only_forward(self, x):
        return x + random.random()

    def forward(self, x: torch.Tensor, *, n: int = 3) -> torch.Tensor:
        return self._only_forward(x)


def get_inputs():
    return [torch.randn(4)]
'''

ADD = """extern "C" void add(const float* in_ptr0, float* out_ptr0)
{
    for(int64_t x0=0; x0<SIZE; x0+=1) out_ptr0[x0] = in_ptr0[x0] + 1;
}"""


def part(workload: str, size: int, **changes: object) -> Specialisation:
    values: dict[str, object] = {
        "workload": workload,
        "key": {"x.shape": f"({size},)", "x.dtype": "torch.float32"},
        "spare_key": {"self.scale": "1.0", "self.groups": workload},
        "inputs": (Input("x", "x", (1,), "torch.float32"),),
        "kernels": {"add": ADD.replace("SIZE", str(size))},
        "body": f"buf0 = torch.empty(({size},), dtype=torch.float32)\n"
        "kernels.add(x, buf0)\nreturn buf0",
    }
    return Specialisation(**(values | changes))  # type: ignore[arg-type]


def made(*parts: Specialisation) -> tuple[str, int]:
    return assemble(read_reference(TASK), parts, "cpp", "A seed.")


def test_the_class_keeps_its_constructor_and_what_that_needs() -> None:
    reference = read_reference(TASK)
    assert reference.imports.split("\n") == ["import math", "import torch"]
    assert "# a comment that stays" in reference.before
    assert "class Part" in reference.before and "SCALE = 2.0" in reference.before
    assert "UNUSED" not in reference.before and "get_inputs" not in reference.before
    assert "super(ModelNew, self).__init__()" in reference.head
    assert "def _make" in reference.head and "_only_forward" not in reference.head
    assert reference.parameters == ("x",)


def test_forward_may_call_its_module_otherwise() -> None:
    """What is generated reads `self`."""
    renamed = TASK.replace("def forward(self, x", "def forward(it, x")
    assert read_reference(renamed).signature.startswith("self, x")


@pytest.mark.parametrize("source", ["Model = object", "class Model(Base):\n    pass"])
def test_a_reference_of_another_form_is_refused(source: str) -> None:
    with pytest.raises(BadInput, match="no seed"):
        read_reference(source)


def test_a_seed_passes_the_screen_and_is_valid_python() -> None:
    source, kernels = made(part("a", 4), part("b", 8))
    assert kernels == 2
    assert screen(source) == []
    names = [node.name for node in ast.parse(source).body if hasattr(node, "name")]
    assert names == ["helper", "Part", "run_a", "run_b", "ModelNew"]
    assert "kernels.add_b(x, buf0)" in source
    assert "return run_a(x.contiguous())" in source


def test_equal_kernels_and_functions_are_written_once() -> None:
    other = {"x.shape": "(2, 2)", "x.dtype": "torch.float32"}
    source, kernels = made(part("a", 4), part("b", 4, key=other))
    assert kernels == 1
    assert "run_b" not in source
    assert source.count("return run_a(") == 2


def test_another_layout_is_restored_before_the_kernels_run() -> None:
    source, _ = made(
        part("a", 4, inputs=(Input("x", "x", (2,), "torch.float32", contiguous=False),))
    )
    assert "def relaid(x, strides):" in source
    assert "run_a(relaid(x, (2,)))" in source


def test_workloads_that_look_alike_are_told_apart_by_the_constructor() -> None:
    alike = {"x.shape": "(4,)", "x.dtype": "torch.float32"}
    source, _ = made(part("1", 4), part("2", 8, key=alike))
    assert "known = (x.shape, x.dtype, self.groups)" in source


def test_lists_of_different_lengths_are_told_apart_by_them() -> None:
    few = {"x[0].shape": "(4,)", "x[1].shape": "(2,)"}
    source, _ = made(part("few", 4, key=few), part("more", 8, key=few | {"x[2].shape": "(4,)"}))
    assert "known = (len(x), x[0].shape, x[1].shape)" in source
    assert "if known == (2, (4,), (2,)):" in source and "if known == (3, (4,), (2,)):" in source
    with pytest.raises(BadInput, match="different numbers of arguments"):
        made(part("few", 4), part("more", 8, key={"x.shape": "(4,)", "y[0].shape": "(4,)"}))


def test_workloads_that_nothing_tells_apart_are_refused() -> None:
    alike = {"x.shape": "(4,)", "x.dtype": "torch.float32"}
    with pytest.raises(BadInput, match="same shapes") as caught:
        made(part("1", 4, spare_key={}), part("2", 8, key=alike, spare_key={}))
    assert "--workload" in caught.value.hint
