"""CUDA C++ kernels, compiled by nvcc. Without an NVIDIA GPU their threads are emulated."""

from __future__ import annotations

from kernel_smith.evaluation.backends.compiled import CompiledBackend


class CudaBackend(CompiledBackend):
    name = "cuda"
