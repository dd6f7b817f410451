"""Where the time of an accepted candidate went, by the origin of the code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import islice

from kernel_smith.evaluation.judge.evidence.modified_code import is_modified
from kernel_smith.evaluation.judge.evidence.profile import attribute, read_maps
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.participant import (
    SAMPLES_PER_TIMED_SECOND,
    Participant,
)
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.records import (
    KernelShare,
)

_PROFILED_SECONDS = 0.04  # of the processor's time, which samples are counted by
_PATIENCE = 0.4  # on a busy machine
_SAMPLES_PER_SECOND = 8000
_PROFILE_CALLS = 64


class Profile:
    """Samples where the candidate's process executes, in batches of their own: that slows it. It
    may notice, so this is advice. Where it matters, timed batches are sampled."""

    def __init__(self, candidate: Participant, objects: str) -> None:
        self._candidate = candidate
        self._authored = f"{objects}/"
        self._pointers: list[int] = []

    def sample(self, sets: Iterator[InputSet]) -> list[int]:
        """Profile the workload that the candidate has just been timed on, with sets it has not
        seen either: on known ones it could hide whose code does the work."""
        sampler = self._candidate.sampler
        if sampler is None:
            return []
        most = min(self._candidate.capacity, _PROFILE_CALLS)
        deadline = time.monotonic() + _PATIENCE
        used = 0.0
        sampler.set_frequency(_SAMPLES_PER_SECOND)
        while used < _PROFILED_SECONDS and time.monotonic() < deadline:
            self._candidate.bind(list(islice(sets, most)))
            used += self._candidate.run(watch=sampler).windows.run_cpu
        pointers = sampler.drain()
        sampler.set_frequency(SAMPLES_PER_TIMED_SECOND)
        self._pointers += pointers
        return pointers

    def shares(self, pointers: list[int] | None = None) -> tuple[KernelShare, ...]:
        """Whose code these samples fell on; by default all that were taken here."""
        pointers = self._pointers if pointers is None else pointers
        try:
            maps = read_maps(self._candidate.child.pid)
        except OSError:
            raise ChildFailed("died", "gone before its time could be attributed") from None
        return attribute(
            pointers,
            maps,
            lambda path: path.startswith(self._authored),
            partial(is_modified, self._candidate.child.pid),
        )
