"""One file per backend; `find_backend` looks one up by name."""

import functools
from importlib.metadata import EntryPoint, entry_points

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.backends.base import Backend, Route
from kernel_smith.evaluation.backends.cpp import CppBackend
from kernel_smith.evaluation.backends.cuda import CudaBackend
from kernel_smith.evaluation.backends.hip import HipBackend
from kernel_smith.evaluation.backends.maca import MacaBackend
from kernel_smith.evaluation.backends.triton import TritonBackend

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
    if name in _offered():
        return _load(_offered()[name])()
    known = ", ".join([*_BACKENDS, *sorted(_offered())])
    raise BadInput(f"no backend is called {name!r}", hint=f"choose one of: {known}")


@functools.cache
def _offered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="kernel_smith.backends")}


def _load(entry: EntryPoint) -> type[Backend]:
    try:
        kind: type[Backend] = entry.load()
    except Exception as error:
        raise MissingPrerequisite(
            f"backend {entry.name} ({entry.value}) cannot be loaded: {error}",
            hint="mend or uninstall the package that offers it",
        ) from error
    return kind


__all__ = ["Backend", "Route", "find_backend"]
