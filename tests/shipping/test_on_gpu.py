"""A Triton kernel stands in for a module on a GPU: right, or the reference, for every call."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from shipping_samples import WIDTH, RMSNorm
from torch import nn

import kernel_smith
from kernel_smith.shipping.folder import PACKAGE, save
from kernel_smith.shipping.live import live_task, read_calls
from kernel_smith.shipping.runtime.dropin import DropIn
from kernel_smith.shipping.runtime.replacement import Replacement
from kernel_smith.shipping.runtime.spec import Spec
from kernel_smith.shipping.runtime.state import fingerprint
from kernel_smith.shipping.whole_model import ModelGauge

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
DEVICE = "cuda"
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def norm(x, weight, y, WIDTH: tl.constexpr):
    c = tl.arange(0, WIDTH)
    row = tl.program_id(0) * WIDTH
    v = tl.load(x + row + c)
    inverse = tl.rsqrt(tl.sum(v * v, 0) / WIDTH + 1e-6)
    tl.store(y + row + c, v * inverse * tl.load(weight + c))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        y = torch.empty_like(x)
        norm[(x.shape[0],)](x, self.weight, y, WIDTH=64)
        return y
"""
ALONE = """
import sys

sys.modules["kernel_smith"] = None  # importing it fails
sys.path.append({folder!r})

import torch
import fast_norm

fast = fast_norm.module()
x = torch.randn(8, 64, device="cuda")
with torch.no_grad():
    expected = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * fast.weight
    torch.testing.assert_close(fast(x), expected)
    torch.testing.assert_close(fast(x[:3]), expected[:3])
print(fast.counts)
"""


class Recorder:
    """A backend of torch.compile that keeps the graphs and runs them as they are."""

    text = ""

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.text += graph.code
        return graph.forward


def rows(count: int = 8) -> torch.Tensor:
    return torch.randn(count, WIDTH, device=DEVICE)


@pytest.fixture(scope="module")
def kernel() -> Replacement:
    """As if a run had found it, for rows of 8 and of 16."""
    module = RMSNorm().to(DEVICE)
    task = live_task(module, read_calls(module, [(rows(8),), (rows(16),)]))
    workloads = {one.name: dict(one.params) for one in task.workloads}
    facts = {"backend": "triton"}
    spec = Spec(task.name, KERNEL, task.source, workloads, DEVICE, fingerprint(module), facts)
    return Replacement(spec, None, PACKAGE)


@pytest.fixture
def plain() -> RMSNorm:
    return RMSNorm().to(DEVICE)


@pytest.fixture
def fast(kernel: Replacement, plain: RMSNorm) -> DropIn:
    module = kernel.module(plain)
    assert isinstance(module, DropIn)
    return module


def test_verified_calls_take_the_kernel(fast: DropIn, plain: RMSNorm) -> None:
    with torch.no_grad():
        for x in (rows(8), rows(16)):
            torch.testing.assert_close(fast(x), plain(x))
    assert (fast.counts.kernel, fast.counts.reference) == (2, {})


def test_all_others_take_the_reference(fast: DropIn, plain: RMSNorm) -> None:
    spread = torch.randn(8, 2 * WIDTH, device=DEVICE)[:, ::2]
    with torch.no_grad():
        for x in (rows(3), rows(0), rows().double(), rows().half(), spread):
            torch.testing.assert_close(fast(x), plain(x))
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            torch.testing.assert_close(fast(x := rows()), plain(x))
        many = torch.randn(3, 8, WIDTH, device=DEVICE)
        torch.testing.assert_close(torch.vmap(fast)(many), plain(many))
    with pytest.raises(RuntimeError, match="same device"):
        fast(torch.randn(8, WIDTH))
    assert fast.counts.kernel == 0


def test_gradients_are_the_references(fast: DropIn, plain: RMSNorm) -> None:
    x = rows().requires_grad_()
    found = torch.autograd.grad(fast(x).square().sum(), [x, plain.weight])
    expected = torch.autograd.grad(plain(x).square().sum(), [x, plain.weight])
    torch.testing.assert_close(found, expected)


def test_copies_are_drop_ins(fast: DropIn) -> None:
    x = rows()
    with torch.no_grad():
        for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            torch.testing.assert_close(other(x), fast(x))
            assert other.counts.kernel == 1


def test_threads_have_streams_of_their_own(fast: DropIn, plain: RMSNorm) -> None:
    wrong: list[torch.Tensor] = []

    def call() -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                x = rows()
                if not torch.allclose(fast(x), plain(x), atol=1e-5):
                    wrong.append(x)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert fast.counts.kernel == 100


def test_a_graph_of_the_device_holds_the_kernel(fast: DropIn, plain: RMSNorm) -> None:
    x, graph = rows(), torch.cuda.CUDAGraph()
    with torch.no_grad():
        fast(x)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            y = fast(x)
        x.copy_(rows())
        graph.replay()
        torch.testing.assert_close(y, plain(x))


class Ends(nn.Module):
    """Ends with something that no graph can hold, if it is told to."""

    def __init__(self, read: bool) -> None:
        super().__init__()
        self.norm, self.read = RMSNorm().to(DEVICE), read

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.norm(x)
        return y / y.abs().max().item() if self.read else y


@pytest.mark.parametrize("read", [False, True])
def test_a_model_is_measured_as_called_and_as_a_graph(read: bool, kernel: Replacement) -> None:
    model, x = Ends(read), rows()
    gain = ModelGauge(kernel, model, None, lambda: model(x)).measure(0)
    assert gain.replaced == ["norm"]
    assert gain.called.speedup.low > 0
    assert (gain.captured is None) == read
    assert ("cannot be captured" in gain.why_not_captured) == read
    torch.randn(8, device=DEVICE).sum().item()  # a capture that failed may take that away


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_the_compiler_sees_one_operator(fast: DropIn, kernel: Replacement) -> None:
    model = nn.Sequential(fast, nn.Linear(WIDTH, WIDTH).to(DEVICE))
    x, seen = rows(), Recorder()
    with torch.no_grad():
        expected = model(x)
        torch.testing.assert_close(torch.compile(model, fullgraph=True, backend=seen)(x), expected)
        assert kernel.spec.identifier in seen.text
        for mode in ("default", "reduce-overhead"):
            torch.compiler.reset()
            compiled = torch.compile(model, fullgraph=True, mode=mode)
            for _ in range(3):
                torch.testing.assert_close(compiled(x).clone(), expected)
        exported = torch.export.export(model.eval(), (x,))
        assert kernel.spec.identifier in exported.graph_module.code
        torch.testing.assert_close(exported.module()(x), expected)


def test_a_folder_runs_without_kernel_smith(kernel: Replacement, tmp_path: Path) -> None:
    folder = save(kernel.spec, tmp_path / "fast_norm", {"weight": torch.full((WIDTH,), 1.25)})
    again = kernel_smith.load(folder).module()
    with torch.no_grad():
        torch.testing.assert_close(again(x := rows()), kernel.module(again)(x))
    program = ALONE.format(folder=str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "1 by the kernel; by the reference: 1 other arguments"
