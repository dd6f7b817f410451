"""MACA C++ kernels for MetaX GPUs, compiled by mxcc.

Where there is an NVIDIA GPU in place of a MetaX one they are built by nvcc, with waves of 64
threads emulated; where there is none, on the CPU. Both are conformance: correctness alone.
"""

from __future__ import annotations

from kernel_smith.evaluation.backends.base import Route
from kernel_smith.evaluation.backends.compiled import CompiledBackend


class MacaBackend(CompiledBackend):
    name = "maca"

    def route(self, *, on_device: bool) -> Route:
        if not on_device:
            return "cpu"
        return "native" if _is_metax() else "nvidia"


def _is_metax() -> bool:
    """Is the GPU that torch uses a MetaX one? torch calls it `cuda` there, too."""
    import torch

    return getattr(torch.version, "maca", None) is not None or "+metax" in torch.__version__
