"""The judge's process: `python -m kernel_smith.evaluation.judge FD FOLDER`.

Started by an engine, which holds the other end of the socket FD and removes FOLDER afterwards.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from pathlib import Path

from kernel_smith.evaluation.judge.nursery import Nursery
from kernel_smith.evaluation.sandbox.confine import die_with_parent
from kernel_smith.evaluation.sandbox.wire import Channel

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Comparing outputs frees and allocates megabytes at a time. By default the C library returns
    them to the system each time, and faulting the pages in again costs more than the arithmetic."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(_M_TRIM_THRESHOLD, 1 << 30)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
    keep_freed_memory()
    nursery = Nursery(Path(sys.argv[2]))
    nursery.begin()
    # Only now, so that this process and the zygote import torch at the same time.
    from kernel_smith.evaluation.judge.server import Server

    Server(Channel.from_fd(int(sys.argv[1])), nursery).serve()


if __name__ == "__main__":
    main()
