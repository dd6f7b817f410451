"""How a process's Triton knows itself from others, for the keys of its caches."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from pathlib import Path


def know_triton_by_its_date() -> None:
    """Have Triton tell itself from others by the version, size and date of its library.

    It would read all of that library, half a gigabyte, once in every process: as long as it takes
    to compile a kernel. Call this before PyTorch's compiler is imported, which keeps the function.
    """
    if find_spec("triton") is None:
        return
    from triton.runtime import cache

    if hasattr(cache, "triton_key"):  # others of its versions have it elsewhere
        cache.triton_key = _key


@functools.cache
def _key() -> str:
    import triton

    (library,) = (Path(triton.__file__).parent / "_C").glob("libtriton.*so*")
    found = library.stat()
    return f"{triton.__version__}-{found.st_size}-{found.st_mtime_ns}"
