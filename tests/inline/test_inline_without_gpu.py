"""Candidates of GPU dialects where there is no GPU: their threads are emulated on the CPU."""

from pathlib import Path

import pytest
import torch

from kernel_smith.errors import BadInput
from kernel_smith.inline import CompileError, cuda, maca

SOURCES = Path(__file__).parent / "sources"
CANDIDATE = '''\
from kernel_smith.inline import cuda

kernels = cuda(r"""
__global__ void scale(const float* x, float* y, long n) {
    y[threadIdx.x] = wrong;
}
extern "C" void launch(const float* x, float* y, long n, cudaStream_t stream) {
    scale<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
}
""", flags=["--use_fast_math"])
'''


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_a_maca_candidate_runs_on_tensors_of_the_cpu() -> None:
    kernels = maca((SOURCES / "wave_sums.maca.cpp").read_text())
    x = torch.randint(-50, 50, (28, 64)).float()
    y = torch.empty(28)
    assert kernels.launch_wave_rows(x, y, x.numel(), 256) == 0
    assert torch.equal(y, x.sum(1))
    with pytest.raises(TypeError, match="tensor on the CPU, got one on meta"):
        kernels.launch_wave_rows(x.to("meta"), y, x.numel(), 256)


def test_errors_carry_the_lines_of_the_candidate(tmp_path: Path) -> None:
    path = tmp_path / "my_cuda_candidate.py"
    path.write_text(CANDIDATE)
    with pytest.raises(CompileError, match="the cuda kernel does not compile") as caught:
        exec(compile(CANDIDATE, str(path), "exec"), {"__name__": "my_cuda_candidate"})
    assert "my_cuda_candidate.py:5:" in caught.value.log
    assert "wrong" in caught.value.log


def test_flags_of_another_kind_are_refused_here_too() -> None:
    with pytest.raises(BadInput, match="flag not allowed: -Xcompiler"):
        cuda("int x;", flags=["-Xcompiler=-fplugin=x.so"])
