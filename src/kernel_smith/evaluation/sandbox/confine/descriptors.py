"""Descriptors: nothing stays open but what was handed over on purpose."""

from __future__ import annotations

import os
from collections.abc import Collection


def close_others(keep: Collection[int]) -> None:
    """Close every descriptor above 2 that is not in `keep`."""
    low = 3
    for kept in sorted(descriptor for descriptor in keep if descriptor >= low):
        os.closerange(low, kept)
        low = kept + 1
    os.closerange(low, _one_past_highest())


def _one_past_highest() -> int:
    # A descriptor may be above a limit that was lowered after it was opened.
    return max(int(name) for name in os.listdir("/proc/self/fd")) + 1
