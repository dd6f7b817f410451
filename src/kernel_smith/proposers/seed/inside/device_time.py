"""When this process computes on the GPU: whoever waits for a seed keeps the clock away meanwhile.

To compile takes many seconds, in which the device has nothing to do, so others may time on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager


class DeviceTime:
    """`take` enters and leaves the time in which the device is used; by default nobody is asked."""

    def __init__(
        self, take: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    ) -> None:
        self._take = take
        self._depth = 0

    @contextlib.contextmanager
    def using(self) -> Iterator[None]:
        """Compute on the device, also within something that does."""
        self._depth += 1
        try:
            with self._take() if self._depth == 1 else contextlib.nullcontext():
                yield
        finally:
            self._depth -= 1
