"""What torch traces has the kernel in it, as one operator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm, replacement_of
from torch import nn

from kernel_smith.shipping.runtime.replacement import Replacement
from kernel_smith.shipping.runtime.traced import result_kind

pytestmark = pytest.mark.slow  # importing torch's compiler takes seconds


class Recorder:
    """A backend of torch.compile that keeps the graphs and runs them as they are."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.text += graph.code
        return graph.forward


@pytest.fixture
def model(norm_kernel: Replacement) -> nn.Module:
    torch.compiler.reset()
    return nn.Sequential(norm_kernel.module(RMSNorm()), nn.Linear(WIDTH, WIDTH))


def test_compile_sees_one_operator(model: nn.Module, norm_kernel: Replacement) -> None:
    seen = Recorder()
    compiled = torch.compile(model, fullgraph=True, backend=seen)
    x = torch.randn(8, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
        assert norm_kernel.spec.identifier in seen.text
        assert "rsqrt" not in seen.text


def test_compile_sees_one_operator_where_defaults_are_left_out() -> None:
    class Masked(RMSNorm):
        def forward(  # type: ignore[override]
            self, x: torch.Tensor, mask: torch.Tensor | None = None, shift: float = 0.0
        ) -> torch.Tensor:
            return super().forward(x) + shift

    module, x = Masked(), torch.randn(8, WIDTH)
    kernel = NORM_KERNEL.replace("def forward(self, x):", "def forward(self, x, mask, shift):")
    found = replacement_of(module, {"x": x, "shift": 0.0}, kernel)
    seen = Recorder()
    with torch.no_grad():
        fast = torch.compile(found.module(module), fullgraph=True, backend=seen)
        torch.testing.assert_close(fast(x, shift=0.0), module(x))
    assert found.spec.identifier in seen.text


def test_compile_of_other_calls_sees_the_reference(model: nn.Module) -> None:
    seen = Recorder()
    compiled = torch.compile(model, fullgraph=True, backend=seen)
    x = torch.randn(5, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    x = torch.randn(8, WIDTH, requires_grad=True)
    compiled(x).sum().backward()
    assert x.grad is not None
    assert "torch.ops.kernel_smith" not in seen.text


def test_a_change_of_settings_is_traced_anew(model: nn.Module) -> None:
    seen = Recorder()
    compiled = torch.compile(model, fullgraph=True, backend=seen)
    x = torch.randn(8, WIDTH)
    with torch.no_grad():
        compiled(x)
        model[0].epsilon = 100.0
        torch.testing.assert_close(compiled(x), model(x))
    assert "rsqrt" in seen.text


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((WIDTH,), 2.0))
        self.scale = torch.ones(1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.mask * self.scale


@pytest.mark.parametrize("name", ["mask", "scale"])
def test_a_graph_reads_the_values_that_are_there_when_it_runs(name: str) -> None:
    kernel = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
    plain, x = Masked(), torch.randn(8, WIDTH)
    fast = replacement_of(plain, x, f"{kernel}        return x + x\n").module(plain)
    compiled = torch.compile(fast, fullgraph=True, backend="eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), 2 * x)
        getattr(fast, name).mul_(3)
        torch.testing.assert_close(compiled(x), 6 * x)


def test_sizes_that_an_export_leaves_open_are_the_references(model: nn.Module) -> None:
    rows = torch.export.Dim("rows", min=2, max=100)
    with torch.no_grad():
        exported = torch.export.export(
            model, (torch.randn(8, WIDTH),), dynamic_shapes={"input": {0: rows}}
        )
        x = torch.randn(5, WIDTH)
        torch.testing.assert_close(exported.module()(x), model(x))


def test_functionalized_graphs_hold_the_operator(model: nn.Module) -> None:
    compiled = torch.compile(model[0], fullgraph=True, backend="aot_eager")
    x = torch.randn(16, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model[0](x))


def test_export_holds_the_operator(model: nn.Module, norm_kernel: Replacement) -> None:
    x = torch.randn(8, WIDTH)
    with torch.no_grad():
        exported = torch.export.export(model.eval(), (x,))
        assert norm_kernel.spec.identifier in exported.graph_module.code
        torch.testing.assert_close(exported.module()(x), model(x))


def test_the_operator_passes_torchs_own_checks(norm_kernel: Replacement) -> None:
    norm_kernel.module()
    operator = getattr(torch.ops.kernel_smith, norm_kernel.spec.identifier).default
    arguments = ([torch.randn(8, WIDTH)], [torch.ones(WIDTH)], 0)
    torch.library.opcheck(operator, arguments)


def test_results_are_described_on_the_device_of_the_kernel(norm_kernel: Replacement) -> None:
    """Another device stands in for a GPU; inputs have to be where the parameters are."""
    signature, device = norm_kernel.signatures[0], torch.device("meta")
    assert result_kind(signature, RMSNorm().to(device), device) == "tensor"
