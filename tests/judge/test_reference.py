"""The task, executed: rounding, variants of inputs, and errors that name the author's line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput, NotEnoughMemory
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    promote,
)
from kernel_smith.evaluation.judge.values.mantissa import round_mantissa, truncate_mantissa
from kernel_smith.evaluation.sandbox.tree import flatten
from kernel_smith.records import Task

WriteTask = Callable[..., Task]

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)


def input_set(*arguments: Any) -> InputSet:
    tensors: list[torch.Tensor] = []
    return InputSet(flatten(list(arguments), tensors), tensors)


# ---------------------------------------------------------------- rounding


@given(st.lists(float32s, min_size=1, max_size=20))
def test_seven_bits_are_what_bfloat16_keeps(values: list[float]) -> None:
    exact = torch.tensor(values, dtype=torch.float32)
    coarse = exact.to(torch.bfloat16)
    in_range = coarse.isfinite() & ((exact == 0) | (exact.abs() >= torch.finfo(torch.float32).tiny))
    rounded = round_mantissa(exact.double(), 7)
    assert torch.equal(rounded[in_range], coarse.double()[in_range])


@given(st.lists(st.floats(2**-14, 65000, width=32), min_size=1, max_size=20))
def test_ten_bits_are_what_float16_keeps_in_its_range(values: list[float]) -> None:
    exact = torch.tensor([*values, *(-v for v in values)], dtype=torch.float32)
    assert torch.equal(round_mantissa(exact.double(), 10), exact.half().double())


@given(st.lists(st.floats(2**-100, 2**100, width=32), min_size=1, max_size=20))
def test_truncation_leaves_out_the_bits_that_tensor_cores_do_not_read(values: list[float]) -> None:
    exact = torch.tensor([*values, *(-v for v in values)], dtype=torch.float32)
    read = (exact.view(torch.int32) & ~0x1FFF).view(torch.float32)
    assert torch.equal(truncate_mantissa(exact.double(), 10), read.double())


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False), st.integers(1, 20))
def test_rounding_errs_by_half_a_unit_at_most_and_is_final(value: float, bits: int) -> None:
    exact = torch.tensor([value], dtype=torch.float64)
    rounded = round_mantissa(exact, bits)
    if bool(rounded.isfinite()):
        assert float((rounded - exact).abs()) <= abs(value) * 2.0 ** -(bits + 1)
        assert torch.equal(round_mantissa(rounded, bits), rounded)


def test_rounding_leaves_integers_and_what_is_not_finite_alone() -> None:
    whole = torch.tensor([12345, -7])
    assert round_mantissa(whole, 7) is whole
    odd = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0], dtype=torch.float64)
    assert torch.equal(round_mantissa(odd, 7).nan_to_num(nan=5), odd.nan_to_num(nan=5))


def test_promotion_keeps_values_and_integers() -> None:
    inputs = input_set(
        torch.ones(2).half(), torch.ones(2, dtype=torch.complex64), torch.arange(2), "text"
    )
    assert [t.dtype for t in promote(inputs).tensors] == [
        torch.float64,
        torch.complex128,
        torch.int64,
    ]
    assert promote(inputs).arguments()[3] == "text"


# ---------------------------------------------------------------- the author's code


def source(body: str = "return x", get_inputs: str = "return [torch.randn(3)]") -> str:
    return f"""import torch
import random
import numpy

class Model(torch.nn.Module):
    def forward(self, x):
        {body}

def get_inputs():
    {get_inputs}
"""


@pytest.mark.parametrize(
    "draw",
    ["torch.randn(64)", "torch.tensor(numpy.random.rand(64))", "torch.tensor(random.random())"],
)
def test_inputs_follow_the_seed_whatever_they_are_drawn_from(
    write_task: WriteTask, draw: str
) -> None:
    task = write_task(source(get_inputs=f"return [{draw}]"))
    reference = Reference(task)
    (workload,) = task.workloads
    first, again, other = (reference.draw(workload, seed).tensors[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_inputs_are_copied_only_where_the_author_keeps_them(write_task: WriteTask) -> None:
    task = write_task(
        """
import torch

ADDRESSES, KEPT = [], torch.randn(3, 5)

class Model(torch.nn.Module):
    def forward(self, x, y, z):
        return x + y + z

def get_inputs():
    x, z = torch.randn(3, 5) * 2, torch.randn(3, 5)
    ADDRESSES[:] = [t.data_ptr() for t in (x, KEPT, z)]
    return [x, KEPT, z]
"""
    )
    reference, (workload,) = Reference(task), task.workloads
    inputs = reference.draw(workload, 1)
    made = reference._module.ADDRESSES
    kept = [t.data_ptr() == address for t, address in zip(inputs.tensors, made, strict=True)]
    assert kept == [True, False, True]


def test_calling_the_reference_leaves_the_inputs_alone(write_task: WriteTask) -> None:
    task = write_task(source("return x.mul_(2)"))
    reference = Reference(task)
    (workload,) = task.workloads
    inputs = reference.draw(workload, 1)
    before = inputs.tensors[0].clone()
    reference.call(workload, inputs)
    reference.oracle(workload, inputs)
    assert torch.equal(inputs.tensors[0], before)
    assert reference.mutates(workload, inputs)


def test_the_first_call_shows_whether_inputs_are_to_be_copied(write_task: WriteTask) -> None:
    forwards = {"return x * 2": 1, "return x.mul_(2)": 2}
    for forward, copied in forwards.items():
        reference = Reference(write_task(source(forward)))
        (workload,) = reference.task.workloads
        inputs = reference.draw(workload, 1)
        given = [reference.protected(workload, inputs) is not inputs]
        reference.call(workload, inputs)
        given.append(reference.protected(workload, inputs) is not inputs)
        assert sum(given) == copied
        assert reference.mutates(workload, inputs) is (copied == 2)


def test_the_oracle_computes_in_double_precision(write_task: WriteTask) -> None:
    task = write_task("""
import torch

class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x)

def get_inputs(size=8):
    return [torch.randn(2, size)]

def get_init_inputs(size=8):
    return [size]
""")
    reference = Reference(task)
    (workload,) = task.workloads
    inputs = reference.draw(workload, 1)
    exact = reference.oracle(workload, inputs).tensors[0]
    native = reference.call(workload, inputs).tensors[0]
    assert (exact.dtype, native.dtype) == (torch.float64, torch.float32)
    assert torch.allclose(exact, native.double(), atol=1e-6)
    assert reference.model(workload).linear.weight.dtype == torch.float32


def test_init_inputs_get_those_workload_arguments_that_they_name(write_task: WriteTask) -> None:
    task = write_task("""
import torch

TASK = {"workloads": {"w": {"rows": 2, "size": 5}}}

class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size))

    def forward(self, x):
        return x * self.weight

def get_inputs(rows, size):
    return [torch.randn(rows, size)]

def get_init_inputs(size):
    return [size]
""")
    reference = Reference(task)
    assert reference.init_arguments(task.workloads[0]) == [5]
    inputs = reference.draw(task.workloads[0], 1)
    assert reference.call(task.workloads[0], inputs).tensors[0].shape == (2, 5)


def prepare(task: Task) -> None:
    reference, workload = Reference(task), task.workloads[0]
    reference.model(workload)
    reference.call(workload, reference.draw(workload, 1))


def complaint(task: Task) -> BadInput:
    with pytest.raises(BadInput) as caught:
        prepare(task)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (source(get_inputs="return [torch.randn(-1)]"), 10, "get_inputs raised RuntimeError"),
        (source(get_inputs="return 1 / 0"), 10, "get_inputs raised ZeroDivisionError"),
        (source() + "\nraise OSError('no data')\n", 12, "the module raised OSError: no data"),
        (
            source() + "\ndef get_init_inputs():\n    return [][1]\n",
            13,
            "get_init_inputs raised IndexError",
        ),
        (
            source() + "\ndef get_init_inputs():\n    return [1, 2]\n",
            None,
            "Model(...) raised TypeError",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else None,
)
def test_an_error_in_the_authors_code_names_its_line(
    write_task: WriteTask, text: str, line: int | None, words: str
) -> None:
    task = write_task(text)
    error = complaint(task)
    place = f"{task.path}:{line}: " if line else f"{task.path}: "
    assert error.what.startswith(place)
    assert words in error.what
    assert "kernel-smith tasks check" in error.hint


def test_a_task_that_ends_the_program_is_the_authors_error(write_task: WriteTask) -> None:
    error = complaint(write_task("import sys\nsys.exit('no licence')\n" + source()))
    assert "the module raised SystemExit: no licence" in error.what


@pytest.mark.skipif(torch.cuda.is_available(), reason="tensors can be made on a GPU here")
def test_inputs_on_a_gpu_that_is_not_there_come_with_the_remedy(write_task: WriteTask) -> None:
    error = complaint(write_task(source(get_inputs="return [torch.randn(1, 3).cuda()]")))
    assert "leave out `.cuda()`" in error.hint


def test_inputs_that_no_memory_holds_are_too_large(write_task: WriteTask) -> None:
    task = write_task(source(get_inputs="return [torch.randn(1 << 50)]"))
    with pytest.raises(NotEnoughMemory, match="get_inputs raised") as caught:
        prepare(task)
    assert "smaller workloads" in caught.value.hint


def test_inputs_of_the_wrong_type_are_named(write_task: WriteTask) -> None:
    error = complaint(write_task(source(get_inputs="return [{1, 2}]")))
    assert "set cannot be passed" in error.what
    assert "tensors, numbers, strings" in error.hint


@pytest.mark.parametrize(
    ("returned", "kind", "remedy"),
    [
        ("torch.randn(1, 3)", "a Tensor", "return [x]"),  # its rows would become the arguments
        ("{'x': torch.randn(3)}", "a dict", "in the order of Model.forward's parameters"),
        ("None", "None", "return [x]"),
    ],
)
def test_arguments_that_are_no_list_are_refused_with_the_remedy(
    write_task: WriteTask, returned: str, kind: str, remedy: str
) -> None:
    error = complaint(write_task(source(get_inputs=f"return {returned}")))
    assert f"get_inputs returned {kind}, expected a list of arguments" in error.what
    assert remedy in error.hint


def test_arguments_of_the_constructor_are_a_list_too(write_task: WriteTask) -> None:
    error = complaint(write_task(source() + "\ndef get_init_inputs():\n    return {'a': 1}\n"))
    assert "get_init_inputs returned a dict" in error.what
    assert "Model.__init__" in error.hint


QUANTISED = "torch._empty_affine_quantized([3], scale=0.1, zero_point=0, dtype=torch.qint8)"
ODD = [
    ("torch.eye(3).to_sparse()", "torch.sparse_coo", "dense"),
    (
        "torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])",
        "nested",
        "offsets",
    ),
    (QUANTISED, "quantised", "int_repr"),
]


@pytest.mark.filterwarnings("ignore")  # of torch, about what is to come of these
@pytest.mark.parametrize(("made", "kind", "remedy"), ODD, ids=[kind for _, kind, _ in ODD])
def test_tensors_that_cannot_be_compared_are_refused_wherever_they_are(
    write_task: WriteTask, made: str, kind: str, remedy: str
) -> None:
    taken = write_task(source(get_inputs=f"return [{made}]"))
    returned = write_task(source(f"return {made}"))
    held = source().replace("Module):", f"Module):\n    odd = {made}\n", 1)
    kept = write_task(
        held.replace("return x", "return x + 0\n\n    def buffers(self):\n        yield self.odd")
    )
    for task, who in ((taken, "get_inputs"), (returned, "Model.forward"), (kept, "Model(...)")):
        error = complaint(task)
        assert who in error.what
        assert kind in error.what
        assert remedy in error.hint


def test_parameters_without_a_size_are_refused(write_task: WriteTask) -> None:
    lazy = "Model = lambda: torch.nn.LazyLinear(4)"
    error = complaint(write_task(source() + f"\n{lazy}\n"))
    assert "a parameter without a size" in error.what
    assert "nn.LazyLinear" in error.hint


def test_a_module_beside_the_task_is_not_to_be_installed(write_task: WriteTask) -> None:
    task = write_task("import helpers_of_mine\n" + source())
    assert "pip install helpers_of_mine" in complaint(task).hint
    Path(str(task.path)).with_name("helpers_of_mine.py").touch()
    assert complaint(task).hint == (
        "a task is one file: write into it what it needs of helpers_of_mine, beside it"
    )
