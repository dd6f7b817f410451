"""Real compiles, without a GPU: what the report says about kernels of many kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel_smith.evaluation.compile_only import find_target
from kernel_smith.records import CompileReport, KernelResources

Compile = Callable[..., CompileReport]

HEADER_LINES = 4  # before the kernels, see conftest.py
KERNELS = """
@triton.jit
def softmax_kernel(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    v = tl.load(x + row * n + c, mask=c < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * n + c, v / tl.sum(v, 0), mask=c < n)


@triton.jit
def matmul_kernel(
    a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None].to(tl.int64) * K + k[None, :])
        right = tl.load(b + k[:, None] * N + n[None, :])
        total = tl.dot(left, right, total, input_precision=PRECISION)
    tl.store(c + m[:, None].to(tl.int64) * N + n[None, :], total)


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BK": 128}, num_warps=8, num_stages=5),
        triton.Config({"BM": 32, "BK": 32}, num_warps=4, num_stages=2),
        triton.Config({"BM": 32, "BK": 32}, num_warps=2, num_stages=2),
    ],
    key=["K"],
)
@triton.jit
def tuned_kernel(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None].to(tl.int64) * K + k[None, :]).to(tl.float16)
        right = tl.load(b + k[:, None] * N + n[None, :]).to(tl.float16)
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None].to(tl.int64) * N + n[None, :], total)


@triton.jit
def hungry_kernel(x, y, B: tl.constexpr):
    c = tl.arange(0, B)
    v = tl.load(x + c)
    total = tl.cumsum(v, 0)
    tl.store(y + c, v * total + tl.sum(total, 0))


def launch(x, weight):
    assert x.is_cuda and weight.device.type == "cuda"
    rows, width = x.shape
    with torch.cuda.device(x.device):
        y = torch.empty_like(x)
        out = torch.empty((rows, 64), device="cuda", dtype=torch.float32)
        softmax_kernel[(rows,)](x, y, width, B=triton.next_power_of_2(width))
        matmul_kernel[(rows // 16, 4)](
            y, weight, out, width, 64, BM=16, BN=16, BK=16, PRECISION="ieee", num_stages=3
        )
        tuned_kernel[lambda meta: (rows // meta["BM"],)](y, weight, out, width, 64, BN=64)
        if rows == 64:
            cuda = torch.cuda.get_device_properties(0).name.startswith("sm_")
            few_registers = {"maxnreg": 32} if cuda else {"waves_per_eu": 8}
            hungry_kernel[(1,)](x, y, B=2048, num_warps=1, **few_registers)
    return out
"""


@pytest.fixture(scope="module", params=["sm_90", "gfx942"])
def report(request: pytest.FixtureRequest, compile_source: Compile) -> CompileReport:
    return compile_source(KERNELS, arch=request.param)


def find(report: CompileReport, name: str) -> list[KernelResources]:
    return [kernel for kernel in report.kernels if kernel.name == name]


def test_a_good_candidate_compiles(report: CompileReport) -> None:
    assert report.ok, f"{report.message}\n{report.log}"
    assert report.failures == ()
    assert report.shared_limit == find_target(report.target).shared_bytes
    assert {k.name for k in report.kernels} == {
        "softmax_kernel",
        "matmul_kernel",
        "tuned_kernel",
        "hungry_kernel",
    }


def test_each_kernel_is_named_with_its_line_and_constants(report: CompileReport) -> None:
    lines = {k.name: k.line for k in report.kernels}
    text = KERNELS.splitlines()
    for name, line in lines.items():
        assert line is not None
        assert text[line - HEADER_LINES - 1].startswith(f"def {name}("), "not its decorators' line"
    assert [k.constants for k in find(report, "softmax_kernel")] == [{"B": 256}, {"B": 1024}]
    assert find(report, "matmul_kernel")[0].constants["PRECISION"] == "ieee"


def test_kernels_know_which_workloads_launch_them(report: CompileReport) -> None:
    assert [k.workloads for k in find(report, "softmax_kernel")] == [("small",), ("large",)]
    assert [k.workloads for k in find(report, "hungry_kernel")] == [("small",)]
    assert all(k.launches == 1 for k in find(report, "softmax_kernel"))


def test_resources_are_measured(report: CompileReport) -> None:
    for kernel in report.kernels:
        assert kernel.registers is not None and kernel.registers > 0
        assert kernel.compile_seconds > 0
    (softmax, _) = find(report, "softmax_kernel")
    assert softmax.spill_bytes == 0
    assert softmax.warps == 4
    assert softmax.occupancy is not None and 0 < softmax.occupancy <= 1
    assert find(report, "matmul_kernel")[0].shared_bytes > 0


def test_register_pressure_shows_as_spills(report: CompileReport) -> None:
    (hungry,) = find(report, "hungry_kernel")
    assert hungry.registers == {"sm_90": 32, "gfx942": 64}[report.target]
    assert hungry.spill_bytes is not None and hungry.spill_bytes > 0


def test_configurations_that_do_not_fit_are_told_and_passed_over(report: CompileReport) -> None:
    tuned = find(report, "tuned_kernel")
    large = [k for k in tuned if k.constants["BM"] == 64]
    assert large and all(not k.fits and k.occupancy is None and not k.launches for k in large)
    assert all(k.shared_bytes > report.shared_limit for k in large)
    launched = [k for k in tuned if k.launches]
    assert launched and all(k.fits and k.constants["BM"] == 32 for k in launched)
    assert any(k.fits and not k.launches for k in tuned), "configurations that were only tried"


STREAMS = """
@triton.jit
def copy_kernel(x, y, B: tl.constexpr):
    c = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(y + c, tl.load(x + c))


def launch(x, weight):
    side, current = torch.cuda.Stream(), torch.cuda.current_stream()
    done = torch.cuda.Event(enable_timing=True)
    left, right = torch.empty_like(x), torch.empty_like(x)
    side.wait_stream(current)
    with torch.cuda.stream(side):
        copy_kernel[(x.numel() // 64,)](x, left, B=64)
        done.record(side)
    x.record_stream(side)
    copy_kernel[(x.numel() // 64,)](x, right, B=64)
    current.wait_event(done)
    torch.cuda.default_stream().wait_stream(side)
    return left, right, side.query()
"""


def test_side_streams_and_events_need_no_gpu(compile_source: Compile) -> None:
    report = compile_source(STREAMS)
    assert report.ok, f"{report.message}\n{report.log}"
    (kernel,) = report.kernels
    assert kernel.launches == 4  # two for each workload
