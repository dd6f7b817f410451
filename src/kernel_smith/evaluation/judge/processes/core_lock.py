"""One timed measurement at a time per set of cores, across all judges of this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(cores: Collection[int]) -> Iterator[None]:
    """Hold the timed cores. The lock is advisory and vanishes with the process that holds it."""
    folder = Path(tempfile.gettempdir())
    with contextlib.ExitStack() as stack:
        for core in sorted(cores):
            path = folder / f"kernel-smith-core-{os.getuid()}-{core}.lock"
            handle = stack.enter_context(path.open("w"))
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
