"""Processes that are ready before anybody needs them: a context on the GPU takes half a second.

The processes of the next candidate are started while the one before it is being checked. They wait,
confined and with a context, for a program to load.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.evaluation.judge.child import Child
from kernel_smith.evaluation.judge.nursery import Nursery, Place
from kernel_smith.records import Limits


@dataclass
class Spare:
    """For one candidate: a folder for what is compiled, and processes that can read it."""

    limits: Limits
    objects: Path
    children: list[Child]


class Spares:
    def __init__(self, nursery: Nursery, place: Place) -> None:
        self._nursery = nursery
        self._place = place
        self._waiting: Spare | None = None
        self._left_over: Spare | None = None

    def prepare(self, limits: Limits) -> None:
        """Start what the next candidate needs. Returns at once."""
        if self._waiting is not None:
            return
        spare, self._left_over = self._left_over, None
        if spare is None or spare.limits != limits:
            self._discard(spare)
            spare = self._empty(limits)
        while len(spare.children) < _PROCESSES:
            spare.children.append(self.start(spare.objects, limits))
        self._waiting = spare

    def take(self, limits: Limits) -> Spare:
        """What waits, if it fits; otherwise an empty one, whose processes are still to start."""
        spare, self._waiting = self._waiting, None
        if spare is not None and spare.limits == limits:
            return spare
        self._discard(spare)
        return self._empty(limits)

    def take_back(self, spare: Spare) -> None:
        """What a candidate leaves. Processes that it did not need have not seen it, and will not
        see what it compiled."""
        if not spare.children or self._left_over is not None:
            self._discard(spare)
            return
        for path in spare.objects.iterdir():
            path.unlink()
        self._left_over = spare

    def _empty(self, limits: Limits) -> Spare:
        return Spare(limits, self._nursery.new_folder("objects"), [])

    def start(self, objects: Path, limits: Limits) -> Child:
        return self._nursery.start(self._place, limits, readable=(objects,), gpu=True)

    def close(self) -> None:
        self._discard(self._waiting)
        self._discard(self._left_over)
        self._waiting = self._left_over = None

    def _discard(self, spare: Spare | None) -> None:
        if spare is not None:
            for child in spare.children:
                self._nursery.end(child)
            shutil.rmtree(spare.objects, ignore_errors=True)


_PROCESSES = 2  # one with the candidate's kernels, one whose kernels do nothing
