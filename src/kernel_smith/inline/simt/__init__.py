"""GPU threads on the CPU: CUDA, MACA and HIP sources as plain C++ for the host's compiler.

`rewrite` turns the text into C++, line by line, and `compiler_arguments` names the headers under
`include` that emulate the threads, waves and memories of a GPU.
"""

from __future__ import annotations

from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.inline.simt.rewrite import rewrite

__all__ = ["compiler_arguments", "rewrite"]

_INCLUDE = Path(__file__).parent / "include"

# What a source may use without including anything, and what sets the dialects apart.
_ARGUMENTS = {
    "cuda": ("-DKS_WAVE=32", "-include", "simt.h"),
    "maca": ("-DKS_WAVE=64", "-include", "mc_runtime.h"),
    "hip": ("-DKS_WAVE=64", "-D__HIP_PLATFORM_AMD__=1", "-include", "hip/hip_runtime.h"),
}


def compiler_arguments(dialect: str) -> list[str]:
    """Return what g++ or clang++ needs besides `-std=c++17` to compile a rewritten source."""
    chosen = _ARGUMENTS.get(dialect)
    if chosen is None:
        known = ", ".join(_ARGUMENTS)
        raise BadInput(f"no emulation of the dialect '{dialect}'", hint=f"use one of: {known}")
    headers = ["-I", str(_INCLUDE / dialect), "-I", str(_INCLUDE)]
    # `#pragma unroll` is no mistake, and g++ does not know it.
    return [*headers, "-Wno-unknown-pragmas", *chosen]
