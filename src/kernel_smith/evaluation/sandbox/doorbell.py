"""A page of memory through which the judge starts a timed batch and learns that it is finished.

Messages through sockets take as long as ten small kernels, and never the same time twice. Here both
sides look at a number until it changes. The process is not believed for that: what it calls
finished is read at once.

Nothing but the moment is told here. Inputs and results lie on the device, and words go through
sockets, so it does not matter in which order a processor shows what was written to memory.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time

_START, _DONE = 0, 1


class Doorbell:
    """`fd` is handed to the other side, which opens it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._page = mmap.mmap(fd, mmap.PAGESIZE)
        self._words = memoryview(self._page).cast("Q")

    @classmethod
    def create(cls) -> Doorbell:
        fd = os.memfd_create("kernel-smith-doorbell", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, mmap.PAGESIZE)
        # Without the seals the other side could shrink the file and so crash the judge.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return cls(fd)

    def ring(self, mark: int) -> None:
        self._words[_START] = mark

    def await_ring(self, mark: int, seconds: float) -> bool:
        return self._look_until(_START, mark, seconds)

    def finish(self, mark: int) -> None:
        self._words[_DONE] = mark

    def is_finished(self, mark: int) -> bool:
        return self._words[_DONE] == mark

    def await_finish(self, mark: int, seconds: float) -> bool:
        return self._look_until(_DONE, mark, seconds)

    def _look_until(self, word: int, mark: int, seconds: float) -> bool:
        """Without sleeping: to wake up takes longer than what is waited for."""
        words = self._words
        deadline = time.monotonic() + seconds
        while words[word] != mark:
            if time.monotonic() > deadline:
                return False
        return True

    def close(self) -> None:
        if self.fd >= 0:
            self._words.release()
            self._page.close()
            os.close(self.fd)
            self.fd = -1
