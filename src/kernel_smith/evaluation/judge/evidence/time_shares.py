"""Where the time of an accepted candidate went, by the origin of the code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kernel_smith.evaluation.judge.evidence.profile import attribute, read_maps
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.records import (
    KernelShare,
)

_PROFILE_SECONDS = 0.04
_PROFILE_CALLS = 64


class Sampled(NamedTuple):
    """Whose code ran in one workload's calls, and how much processor time each of them took."""

    shares: tuple[KernelShare, ...]
    seconds_per_call: float


class Profile:
    """Samples where the candidate's process executes, in batches that it cannot tell from timed
    ones. They are not timed: sampling would slow the candidate and not the reference."""

    def __init__(self, candidate: Participant, objects: str) -> None:
        self._candidate = candidate
        self._authored = f"{objects}/"
        self._pointers: list[int] = []

    def sample(self, sets: Iterator[InputSet]) -> Sampled:
        """Profile the workload that the candidate has just been timed on, with sets it has not
        seen either: on known ones it could hide whose code does the work."""
        sampler = self._candidate.sampler
        if sampler is None:
            return Sampled((), 0.0)
        most = min(self._candidate.capacity, _PROFILE_CALLS)
        deadline = time.monotonic() + _PROFILE_SECONDS
        used, calls = 0.0, 0
        while True:
            self._candidate.bind(list(islice(sets, most)))
            batch = self._candidate.run(watch=sampler)
            used, calls = used + batch.windows.run_cpu, calls + batch.calls
            if time.monotonic() > deadline:
                break
        pointers = sampler.drain()
        self._pointers += pointers
        return Sampled(self._attribute(pointers), used / calls)

    def kernels(self) -> tuple[KernelShare, ...]:
        """Shares over all workloads."""
        return self._attribute(self._pointers)

    def _attribute(self, pointers: list[int]) -> tuple[KernelShare, ...]:
        try:
            maps = read_maps(self._candidate.child.pid)
        except OSError:
            raise ChildFailed("died", "gone before its time could be attributed") from None
        return attribute(pointers, maps, lambda path: path.startswith(self._authored))
