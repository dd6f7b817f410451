"""One file per backend; `find_backend` looks one up by name."""

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends.base import Backend, Route
from kernel_smith.evaluation.backends.cpp import CppBackend
from kernel_smith.evaluation.backends.cuda import CudaBackend
from kernel_smith.evaluation.backends.hip import HipBackend
from kernel_smith.evaluation.backends.maca import MacaBackend
from kernel_smith.evaluation.backends.triton import TritonBackend
from kernel_smith.plugins import load_backend, offered_backends

_BACKENDS: dict[str, type[Backend]] = {
    "cpp": CppBackend,
    "triton": TritonBackend,
    "cuda": CudaBackend,
    "maca": MacaBackend,
    "hip": HipBackend,
}


def find_backend(name: str) -> Backend:
    """A built-in backend, or one that an installed package offers."""
    if name in _BACKENDS:
        return _BACKENDS[name]()
    if name in offered_backends():
        backend: Backend = load_backend(name)()
        return backend
    known = ", ".join([*_BACKENDS, *sorted(offered_backends())])
    raise BadInput(f"no backend is called {name!r}", hint=f"choose one of: {known}")


__all__ = ["Backend", "Route", "find_backend"]
