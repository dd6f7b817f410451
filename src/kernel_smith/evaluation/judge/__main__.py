"""The judge's process: `python -m kernel_smith.evaluation.judge FD FOLDER`.

Started by an engine, which holds the other end of the socket FD and removes FOLDER afterwards.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
from pathlib import Path

from kernel_smith.evaluation.judge.processes.pool import ProcessPool
from kernel_smith.evaluation.sandbox.begin import be_zygote, load_torch
from kernel_smith.evaluation.sandbox.memory import keep_large_memory
from kernel_smith.evaluation.sandbox.wire import Channel


def end_with(parent: int) -> None:
    """Do not outlive the engine's process, even in the midst of an evaluation.

    The system's own service for this (prctl) acts when the thread ends that started this process,
    which in a pool of threads is too early.
    """

    def wait() -> None:
        select.select([parent], [], [])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.pidfd_open(os.getppid())
    processes = ProcessPool(Path(sys.argv[2]))
    load_torch()
    processes.begin(be_zygote)
    keep_large_memory()  # only now, like the rest: processes that are timed do not
    end_with(parent)  # a process that has threads does not fork well
    from kernel_smith.evaluation.judge.server import Server

    gc.freeze()  # what was imported is never garbage, and need not be searched for it again
    Server(Channel.from_fd(int(sys.argv[1])), processes).serve()


if __name__ == "__main__":
    main()
