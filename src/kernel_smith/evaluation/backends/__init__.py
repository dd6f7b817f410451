"""One file per backend; `find_backend` looks one up by name."""

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends.base import Backend
from kernel_smith.evaluation.backends.cpp import CppBackend

_BACKENDS: dict[str, type[Backend]] = {"cpp": CppBackend}


def find_backend(name: str) -> Backend:
    if name not in _BACKENDS:
        known = ", ".join(_BACKENDS)
        hint = f"choose one of: {known}; triton candidates can be compiled: add --compile-only"
        raise BadInput(f"no backend is called {name!r} that can be judged here", hint=hint)
    return _BACKENDS[name]()


__all__ = ["Backend", "find_backend"]
