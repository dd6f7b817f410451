"""Processes that are ready before anybody needs them: a context on the GPU takes half a second.

The processes of the next candidate are started while the one before it is being checked. They wait,
confined and with a context, for a program to load. Each has a folder of its own that it can read,
for what is compiled.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.records import Limits

_MOST_WAITING = 2  # one with the candidate's kernels, one whose kernels do nothing


@dataclass(frozen=True)
class Spare:
    limits: Limits
    objects: Path
    child: Child


class Spares:
    def __init__(self, processes: ProcessPool, place: CoreSet) -> None:
        self._processes = processes
        self._place = place
        self._waiting: list[Spare] = []

    def prepare(self, limits: Limits, count: int) -> None:
        """Start what the next candidate needs, if it is like this one. Returns at once."""
        for spare in [s for s in self._waiting if s.limits != limits]:
            self._waiting.remove(spare)
            self._discard(spare)
        while len(self._waiting) < count:
            self._waiting.append(self._start(limits))

    def take(self, limits: Limits) -> Spare:
        """One that waits, if one fits; otherwise one that has just been started."""
        for spare in self._waiting:
            if spare.limits == limits:
                self._waiting.remove(spare)
                return spare
        return self._start(limits)

    def take_back(self, spare: Spare) -> None:
        """One that was not needed after all: its process has not seen the candidate, and will not
        see what it compiled."""
        if len(self._waiting) >= _MOST_WAITING:
            self._discard(spare)
            return
        for path in spare.objects.iterdir():
            path.unlink()
        self._waiting.append(spare)

    def forget(self, spare: Spare) -> None:
        """One whose process somebody has used, and ended."""
        shutil.rmtree(spare.objects, ignore_errors=True)

    def start_beside(self, objects: Path, limits: Limits) -> Child:
        """Another process that can read the same objects."""
        return self._processes.start(self._place, limits, readable=(objects,), gpu=True)

    def _start(self, limits: Limits) -> Spare:
        objects = self._processes.new_folder("objects")
        return Spare(limits, objects, self.start_beside(objects, limits))

    def _discard(self, spare: Spare) -> None:
        self._processes.end(spare.child)
        self.forget(spare)

    def close(self) -> None:
        while self._waiting:
            self._discard(self._waiting.pop())
