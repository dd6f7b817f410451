"""The real nvcc, where it is installed: no GPU is needed to compile for one."""

import re
import subprocess
from pathlib import Path

import pytest

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.build import build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.diagnostics import parse
from kernel_smith.inline.dialects import COMPAT
from kernel_smith.inline.elf import exported_functions
from kernel_smith.inline.toolchain import command, find_toolchain

SOURCES = Path(__file__).parent / "sources"
LAUNCHER = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <int N>
__global__ void __launch_bounds__(N) scale(const __half* x, __nv_bfloat16* y, int64_t n) {
    __shared__ float row[N];
    row[threadIdx.x] = __half2float(x[threadIdx.x]);
    __syncthreads();
    int64_t i = blockIdx.x * int64_t(N) + threadIdx.x;
    auto twice = [=] __device__(float value) { return 2 * value; };
    if (i < n) y[i] = __float2bfloat16(twice(row[N - 1 - threadIdx.x]));
}
extern "C" cudaError_t launch(const half* x, __nv_bfloat16* y, int64_t n, cudaStream_t stream) {
    scale<BLOCK><<<(n + BLOCK - 1) / BLOCK, BLOCK, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
"""
WRONG = """
__global__ void k(float* y) {
    y[0] = nope(3);
    y[1] = __match_any_sync(~0ull, 3);
}
"""


@pytest.fixture(autouse=True, scope="module")
def nvcc_is_here() -> None:
    try:
        find_toolchain("cuda")
    except MissingPrerequisite as missing:
        pytest.skip(missing.what)


def naming_all_of(dialect: str, prefix: str) -> str:
    """Text that compiles only if every name of a vendor's runtime stands for one of CUDA's."""
    text = (COMPAT / dialect / f"kernel_smith_{dialect}_names.h").read_text()
    names = re.findall(rf"#define ({prefix}\w+) cuda", text)
    assert len(names) > 80
    # These are numbers, to the preprocessor.
    numbers = re.compile(rf"{prefix}(Stream(Default|NonBlocking)|Event(Default|DisableTiming))")
    uses = [
        f"constexpr int number{index} = {name};" if numbers.fullmatch(name) else f"using ::{name};"
        for index, name in enumerate(names)
    ]
    return "namespace all_names {\n" + "\n".join(uses) + "\n}\n"


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


@pytest.mark.slow
def test_a_cuda_source_becomes_a_library_with_figures(cache: ObjectCache) -> None:
    result = build(LAUNCHER, ["-DBLOCK=128", "-lineinfo"], "cuda", cache, arch="sm_90")
    assert result.path is not None, result.log
    assert "launch" in exported_functions(result.path)
    [kernel] = result.resources
    assert "scale<128>" in kernel.name
    assert kernel.shared == 512
    assert kernel.spill_stores == 0
    assert kernel.registers


def test_a_maca_source_becomes_code_whose_warps_meet_in_pairs(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cpp"
    source.write_text((SOURCES / "wave_sums.maca.cpp").read_text() + naming_all_of("maca", "mc"))
    toolchain = find_toolchain("maca", "nvidia", arch="sm_90")
    words = command(toolchain, source, tmp_path / "kernel.ptx")
    words[words.index("-shared")] = "-ptx"
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    text = (tmp_path / "kernel.ptx").read_text()
    kernels = text.split(".visible .entry ")[1:]
    assert len(kernels) == 4
    for kernel in kernels:
        assert "barrier.sync" in kernel
        assert ", 64;" in kernel


@pytest.mark.slow
def test_a_hip_source_becomes_a_library(cache: ObjectCache) -> None:
    source = (SOURCES / "wave_sums.hip.cpp").read_text() + naming_all_of("hip", "hip")
    result = build(source, (), "hip", cache, route="nvidia", arch="sm_90")
    assert result.path is not None, result.log
    assert len(result.resources) == 4
    # The emulation's own memory: 15 waves of 64 cells with 8 bytes.
    assert all(kernel.shared and kernel.shared >= 7680 for kernel in result.resources)


@pytest.mark.slow
def test_errors_carry_the_lines_of_the_candidate(cache: ObjectCache) -> None:
    result = build(WRONG, (), "maca", cache, route="nvidia", arch="sm_90")
    assert result.path is None
    found = {(m.line, m.text) for m in parse(result.log, "kernel.cpp", first_line=10)}
    assert (12, 'identifier "nope" is undefined') in found
    assert any(line == 13 and "not emulated on NVIDIA" in text for line, text in found)
