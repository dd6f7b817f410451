"""Which rounds to set aside, because somebody was kept waiting for a core.

A batch of kernels takes milliseconds, and a thread that has to wait for a core waits about as long.
What it takes then says how busy the machine is. That cannot be subtracted on a GPU, which goes on
meanwhile, so another round is taken in place of this one, while there is time. A candidate that
makes itself wait gains nothing by it: the rest counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernel_smith.evaluation.judge.platform.batch import Batch, Windows

_SHARE, _SECONDS = 0.02, 5e-5  # of the batch, or of anything: what a quiet machine may show
_MORE_OF_ITS_OWN = 3
_TELLING = 6  # rounds
_MOST = 0.6  # of them


class Interruptions:
    def __init__(self, candidate: str) -> None:
        self._candidate = candidate
        self._rounds = 0
        self._alone, self._others = 0, 0  # set aside because of the candidate's process alone

    def sets_aside(self, batches: Mapping[str, Batch]) -> bool:
        """Is this round not to count? Of those in which the candidate's process alone had to wait,
        which may be its own doing, no more are left out than of others."""
        self._rounds += 1
        waited = {name for name, batch in batches.items() if was_interrupted(batch.windows)}
        if not waited:
            return False
        if waited != {self._candidate}:
            self._others += 1
            return True
        if self._alone >= self._others + _MORE_OF_ITS_OWN:
            return False
        self._alone += 1
        return True

    def are_many(self) -> bool:
        """Are so many set aside that batches should be shorter?"""
        return self._rounds >= _TELLING and self._alone + self._others > _MOST * self._rounds

    def forget(self) -> None:
        """Count anew."""
        self._rounds = self._alone = self._others = 0


def was_interrupted(windows: Windows) -> bool:
    return windows.waited > max(_SHARE * windows.run_wall, _SECONDS)
