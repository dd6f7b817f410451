"""C++ kernels on the CPU, compiled by the host's compiler."""

from __future__ import annotations

from kernel_smith.evaluation.backends.base import Route
from kernel_smith.evaluation.backends.compiled import CompiledBackend


class CppBackend(CompiledBackend):
    name = "cpp"
    gpu = False

    def route(self, *, on_device: bool) -> Route:
        return "native"
