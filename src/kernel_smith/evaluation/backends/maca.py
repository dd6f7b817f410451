"""MACA C++ kernels for MetaX GPUs, compiled by mxcc.

Where there is an NVIDIA GPU in place of a MetaX one they are built by nvcc, with waves of 64
threads emulated; where there is none, on the CPU. Both are conformance: correctness alone.
"""

from __future__ import annotations

from kernel_smith.evaluation.backends.base import Route
from kernel_smith.evaluation.backends.compiled import CompiledBackend
from kernel_smith.inline.gpu import vendor_of_torch


class MacaBackend(CompiledBackend):
    name = "maca"

    def route(self, *, on_device: bool) -> Route:
        if not on_device:
            return "cpu"
        return "native" if vendor_of_torch() == "maca" else "nvidia"
