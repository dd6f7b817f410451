"""One file per backend; `find_backend` looks one up by name."""

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends.base import Backend
from kernel_smith.evaluation.backends.cpp import CppBackend
from kernel_smith.evaluation.backends.triton import TritonBackend

_BACKENDS: dict[str, type[Backend]] = {"cpp": CppBackend, "triton": TritonBackend}


def find_backend(name: str) -> Backend:
    if name not in _BACKENDS:
        known = ", ".join(_BACKENDS)
        raise BadInput(f"no backend is called {name!r}", hint=f"choose one of: {known}")
    return _BACKENDS[name]()


__all__ = ["Backend", "find_backend"]
