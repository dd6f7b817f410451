"""Candidates that do not compile, do not end, or lie: each with its reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel_smith.records import CompileReport, Limits, Reason

Compile = Callable[..., CompileReport]

HELPER = """
@triton.jit
def half(v):
    return tl.load(v)


@triton.jit
def broken_kernel(x, y, B: tl.constexpr):
    c = tl.arange(0, B)
    v = tl.load(x + c)
    tl.store(y + c, half(v))


def launch(x, weight):
    y = torch.empty_like(x)
    broken_kernel[(1,)](x, y, B=64)
    return y
"""

LARGE = """
@triton.jit
def large_kernel(a, b, c, K, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        total = tl.dot(tl.load(a + i[:, None] * K + i + start), tl.load(b + i[:, None] + i), total)
    tl.store(c + i[:, None] * B + i, total)


def launch(x, weight):
    large_kernel[(1,)](x, x, x, x.shape[1], B=128, num_warps=8, num_stages=3)
    return x
"""

FORGED = """
import os


def launch(x, weight):
    with open("report.json", "w") as report:
        report.write({text})
    os._exit(0)
"""


def test_an_error_in_a_helper_is_found_at_its_own_line(compile_source: Compile) -> None:
    report = compile_source(HELPER)
    assert report.reason is Reason.COMPILER_REJECTED, report.log
    line = 4 + HELPER.splitlines().index("    return tl.load(v)") + 1
    (failure,) = report.failures
    assert (failure.name, failure.line) == ("broken_kernel", line)
    assert failure.constants == {"B": 64}
    assert report.message.startswith(f"mine.py:{line}: ")
    assert "ptr" in failure.message
    assert "candidate.py" not in report.log


def test_too_much_shared_memory_is_named(compile_source: Compile) -> None:
    report = compile_source(LARGE)
    assert report.reason is Reason.OUT_OF_RESOURCES, report.log
    assert "shared memory" in report.message
    (kernel,) = report.kernels
    assert not kernel.fits
    assert kernel.shared_bytes > report.shared_limit
    assert kernel.launches == 0


def test_an_endless_forward_is_stopped(compile_source: Compile) -> None:
    # Which leaves the processor to others, since most of the limit is for loading.
    loop = "\nimport time\n\ndef launch(x, weight):\n    while True:\n        time.sleep(1)\n"
    limits = Limits(load_seconds=15, compile_seconds=0.1, call_seconds=1)
    report = compile_source(loop, limits=limits)
    assert report.reason is Reason.CALL_TIMEOUT, report.log


def test_an_exception_comes_with_its_line(compile_source: Compile) -> None:
    report = compile_source("\ndef launch(x, weight):\n    return x[5] @ 'no'\n")
    assert report.reason is Reason.EXCEPTION
    assert 'File "mine.py", line 7, in launch' in report.log
    assert "TypeError" in report.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("'[' * 100_000", id="nonsense", marks=pytest.mark.sweep),
        pytest.param("'x' * (8 << 20)", id="oversized"),
    ],
)
def test_a_forged_report_is_the_candidates_failure(compile_source: Compile, text: str) -> None:
    report = compile_source(FORGED.format(text=text))
    assert report.reason is Reason.PROTOCOL_VIOLATION
    assert report.kernels == ()
