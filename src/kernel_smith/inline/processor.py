"""What a compiler can learn about this machine's processors, which decides what `-march=native`
means."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

# On x86, and on Arm.
_ROWS = frozenset(
    {"vendor_id", "cpu family", "model", "model name", "flags"}
    | {"CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"}
)


@functools.cache
def processor() -> str:
    """Return the rows in which Linux describes the processors, each of them once."""
    rows = {os.uname().machine}
    with contextlib.suppress(OSError):
        for row in CPUINFO.read_text(errors="replace").splitlines():
            if row.partition(":")[0].strip() in _ROWS:
                rows.add(row)
    return "\n".join(sorted(rows))
