"""The compile gate for kernels that are texts: nvcc and hipcc, where they are installed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.compile_only import compile_texts
from kernel_smith.records import Candidate, CompileReport, Reason, Task
from kernel_smith.records.compile_prose import render_compiled
from kernel_smith.tasks import read_task
from kernel_smith.testing import backend_suite

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
needs_hipcc = pytest.mark.skipif(shutil.which("hipcc") is None, reason="hipcc is not installed")

SOURCE = """import torch
from kernel_smith.inline import {dialect}

kernels = {dialect}(r'''
{include}
namespace {{
template <typename T>
__global__ void twice(const T* x, T* y, long n) {{
    __shared__ float room[{floats}];
    room[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (long i = threadIdx.x; i < n; i += blockDim.x) y[i] = 2 * x[i] + room[i % 64]{mistake};
}}
}}
extern "C" void launch(const float* x, float* y, long n, {dialect_stream} stream) {{
    twice<<<1, 128, 0, stream>>>(x, y, n);
}}
''')


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.launch(x, y, x.numel())
        return y
"""
INCLUDES = {"cuda": "#include <cuda_runtime.h>", "hip": "#include <hip/hip_runtime.h>"}


@pytest.fixture(scope="module")
def task() -> Task:
    return read_task(Path(backend_suite.__file__).with_name("backend_task.py"))


def compiled(
    task: Task, dialect: str, *, mistake: str = "", arch: str | None = None
) -> CompileReport:
    source = SOURCE.format(
        dialect=dialect,
        include=INCLUDES[dialect],
        floats=256,
        mistake=mistake,
        dialect_stream=f"{dialect}Stream_t",
    )
    candidate = Candidate(source=source, backend=dialect, name="mine.py")
    return compile_texts(task, candidate, arch, lambda what: None)


@needs_nvcc
def test_what_kernels_use_is_reported_with_their_lines(task: Task) -> None:
    report = compiled(task, "cuda", arch="sm_80")
    assert report.ok
    assert report.target == "sm_80"
    (kernel,) = report.kernels
    assert kernel.name == "twice<float>"
    assert kernel.line == 8
    assert kernel.registers is not None and kernel.registers > 4
    assert kernel.spill_bytes == 0
    assert kernel.shared_bytes == 1024
    assert kernel.fits
    assert "nvcc" in report.compiler
    text = render_compiled(report)
    assert "ok: compiles for sm_80: twice<float>" in text
    assert "shared memory 1 of 163 KiB" in text


@pytest.mark.slow
@needs_nvcc
def test_errors_carry_the_candidates_lines(task: Task) -> None:
    report = compiled(task, "cuda", mistake=" + undeclared")
    assert report.reason is Reason.COMPILER_REJECTED
    assert report.message.startswith("mine.py:12:")
    assert "undeclared" in report.message
    assert report.kernels == ()


@needs_hipcc
def test_hip_for_an_amd_gpu(task: Task) -> None:
    report = compiled(task, "hip")
    assert report.ok, report.log
    assert report.target == "gfx90a"
    (kernel,) = report.kernels
    assert kernel.name == "twice<float>"
    assert kernel.registers is not None and kernel.registers > 0
    assert kernel.shared_bytes == 1024


@needs_nvcc
def test_an_architecture_of_another_vendor_is_bad_input(task: Task) -> None:
    with pytest.raises(BadInput, match="no architecture of nvcc: 'gfx90a'"):
        compiled(task, "cuda", arch="gfx90a")


@needs_nvcc
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import torch\n", Reason.NO_KERNEL_SOURCE),
        ("import torch\nclass ModelNew(:\n", Reason.SYNTAX_ERROR),
    ],
)
def test_a_file_without_kernels_is_a_report(task: Task, source: str, reason: Reason) -> None:
    candidate = Candidate(source=source, backend="cuda", name="mine.py")
    report = compile_texts(task, candidate, None, lambda what: None)
    assert report.reason is reason


def test_a_missing_compiler_is_named_with_its_remedy(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("MACA_PATH", "MXCC"):
        monkeypatch.delenv(name, raising=False)
    candidate = Candidate(source="import torch\n", backend="maca", name="mine.py")
    with pytest.raises(MissingPrerequisite, match="no maca compiler") as raised:
        compile_texts(task, candidate, None, lambda what: None)
    assert "MACA_PATH" in raised.value.hint
