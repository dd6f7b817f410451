"""Kernels and their launchers, found in the trace that torch's profiler writes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_smith.evaluation.sandbox.kernel_events import kernel_events, parse_trace, profiling

MAIN, OTHER = 4321, 4400


def span(category: str, name: str, ts: float, dur: float, tid: int = MAIN, **args: Any) -> Any:
    return {"ph": "X", "cat": category, "name": name, "pid": 77, "tid": tid} | {
        "ts": ts,
        "dur": dur,
        "args": args,
    }


def kernel(name: str, ts: float, dur: float, correlation: int, **more: Any) -> Any:
    args = {
        "External id": 5,
        "device": 0,
        "stream": 7,
        "correlation": correlation,
        "registers per thread": 32,
        "shared memory": 1024,
        "blocks per SM": 0.5,
        "warps per SM": 2.0,
        "grid": [66, 1, 1],
        "block": [128, 1, 1],
        "est. achieved occupancy %": 25,
    }
    return span("kernel", name, ts, dur, tid=7, **(args | more)) | {"pid": 0}


TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 77, "tid": 0, "args": {"name": "python"}},
        {"ph": "s", "id": 1, "pid": 77, "tid": MAIN, "ts": 101.0, "cat": "ac2g", "name": "ac2g"},
        span("user_annotation", "a stretch of the program", 90.0, 500.0),
        # An operator of the library that calls another, and launches after that one is done.
        span("cpu_op", "aten::matmul", 100.0, 50.0),
        span("cpu_op", "aten::mm", 105.0, 20.0),
        span("cuda_runtime", "cudaLaunchKernel", 130.0, 4.0, correlation=1),
        kernel("looks_like_mine", 140.0, 10.0, 1),
        # A launch of the candidate's own, between operators.
        span("cuda_driver", "cuLaunchKernelEx", 160.0, 3.0, correlation=2),
        kernel("cutlass_gemm", 155.0, 30.0, 2),
        # Another thread's operator is no cover, and an operator of somebody else is not torch's.
        span("cpu_op", "aten::add", 200.0, 50.0, tid=OTHER),
        span("cpu_op", "mine::softmax", 205.0, 20.0),
        span("cuda_runtime", "cuLaunchKernel", 210.0, 2.0, correlation=3),
        kernel("softmax_kernel", 215.0, 5.0, 3),
        # A copy, and a graph, within which nobody sees who launched what.
        span("cpu_op", "aten::copy_", 300.0, 20.0),
        span("cuda_runtime", "cudaMemcpyAsync", 305.0, 5.0, correlation=4),
        span("gpu_memcpy", "Memcpy DtoD", 310.0, 8.0, tid=7, correlation=4, bytes=4096),
        span("cuda_runtime", "cudaGraphLaunch", 400.0, 5.0, correlation=5),
        kernel("in_a_graph", 410.0, 5.0, 5),
        kernel("of_unknown_launch", 420.0, 5.0, 99),
    ],
}


def test_every_kernel_and_copy_is_found_in_order_of_time() -> None:
    names = [found["name"] for found in parse_trace(TRACE)]
    assert names == [
        "looks_like_mine",
        "cutlass_gemm",
        "softmax_kernel",
        "Memcpy DtoD",
        "in_a_graph",
        "of_unknown_launch",
    ]


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("looks_like_mine", True),
        ("cutlass_gemm", False),
        ("softmax_kernel", False),
        ("Memcpy DtoD", True),
        ("in_a_graph", None),
        ("of_unknown_launch", None),
    ],
)
def test_the_launch_decides_whether_a_kernel_is_the_librarys(
    name: str, inside: bool | None
) -> None:
    (found,) = (item for item in parse_trace(TRACE) if item["name"] == name)
    assert found["inside_aten"] is inside


def test_a_kernel_comes_with_its_time_and_resources() -> None:
    assert parse_trace(TRACE)[0] == {
        "name": "looks_like_mine",
        "start_us": 140.0,
        "end_us": 150.0,
        "grid": [66, 1, 1],
        "block": [128, 1, 1],
        "shared": 1024,
        "registers": 32,
        "occupancy": 0.25,
        "inside_aten": True,
    }


def test_without_any_operators_nobody_knows_who_launched() -> None:
    events = [event for event in TRACE["traceEvents"] if event.get("cat") != "cpu_op"]
    found = parse_trace({"traceEvents": events})
    assert len(found) == 6
    assert {item["inside_aten"] for item in found} == {None}


def test_a_copy_has_no_grid() -> None:
    (copy,) = (item for item in parse_trace(TRACE) if item["name"] == "Memcpy DtoD")
    assert (copy["grid"], copy["registers"], copy["occupancy"]) == ([], None, None)


def test_a_trace_without_a_device_holds_no_kernels() -> None:
    assert parse_trace({"traceEvents": [span("cpu_op", "aten::add", 1.0, 2.0)]}) == []


def test_a_profile_of_the_cpu_alone_can_be_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no GPU
        profiler = profiling()
    with profiler:
        torch.ones(4) + 1
    assert kernel_events(profiler) == []


TRITON_KERNEL = """
import triton
import triton.language as tl


@triton.jit
def shift_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)
"""


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_real_profile_tells_an_authored_kernel_from_a_librarys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton")
    (tmp_path / "authored_kernels.py").write_text(TRITON_KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    import authored_kernels  # type: ignore[import-not-found]

    x = torch.randn(1 << 20, device="cuda")
    y = torch.empty_like(x)

    def call() -> None:
        authored_kernels.shift_kernel[(1024,)](x, y, x.numel(), BLOCK=1024)
        torch.mm(y.view(1024, 1024), y.view(1024, 1024))

    call()
    torch.cuda.synchronize()
    with profiling() as profiler:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    found = kernel_events(profiler)
    authored = [item for item in found if item["inside_aten"] is False]
    assert [item["name"] for item in authored] == ["shift_kernel"] * 3
    assert all(item["registers"] > 0 and item["grid"] == [1024, 1, 1] for item in authored)
    assert sum(item["inside_aten"] is True for item in found) >= 3
    assert all(item["end_us"] > item["start_us"] for item in found)
