"""What the judge does with the results of a stopped process, as their owner may.

It fetches them, changes the inputs to see that no result is one of them, and overwrites them. The
process gets nothing back that it could build on: neither the constants of a result that was right,
nor an input in the guise of one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from kernel_smith.evaluation.judge.platform.buffers import SharedBuffers, Spoilt
from kernel_smith.evaluation.judge.platform.used_memory import UsedMemory
from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.values.pieces import same_bits
from kernel_smith.evaluation.sandbox.arena import Slot

_EXAMINED_BATCHES = 0.25  # of those that are timed
_EXAMINED_BYTES = 64 << 20  # of larger calls no input is changed while they are timed

_system_random = random.SystemRandom()


@dataclass
class Examiner:
    """Examines the results of one workload. `own`: does each output have memory of its own, which
    may be overwritten? Empty while that is not known. `may_overlap`: outputs that share memory
    with others in the reference."""

    child: Child
    room: SharedBuffers
    outputs: list[list[Slot]] = field(default_factory=list)  # per call
    parameters: Sequence[Slot] = ()
    own: Sequence[bool] = ()
    may_overlap: frozenset[int] = frozenset()
    used: UsedMemory = field(default_factory=UsedMemory)
    fresh_bytes: int = 0
    """Of the last batch's results, how much lay where none had been before."""
    may_overwrite: bool = False
    """Not before results have been seen to be as large as they should be."""
    overlapping: frozenset[int] = frozenset()
    """Outputs of the last batch that lie where other results do."""
    _spoilt: Spoilt | None = None  # the results of the last batch

    def take(
        self, inputs: list[list[Slot]], count: int, *, thorough: bool = False
    ) -> frozenset[int]:
        """Fetch what so many calls returned; which outputs were seen to change with the inputs?

        `thorough`: of all calls, and with the parameters, instead of one call's now and then.
        """
        self._spoilt, self.overlapping, self.fresh_bytes = None, frozenset(), 0
        self.room.fetch(self.child, self.outputs)
        if not any(self.own) or not count:
            return frozenset()
        calls = range(count) if thorough else self._one_by_chance(inputs, count)
        changed = [slot for call in calls for slot in inputs[call]]
        shared = self._sharing(calls, changed + (list(self.parameters) if thorough else []))
        if self.may_overwrite:
            self._spoilt = self.room.spoil(self.child, self.outputs[:count], self.own)
            self.overlapping = self._spoilt.overlapping - self.may_overlap
            self.fresh_bytes = self.used.add(self._spoilt.places)
        return shared

    def _one_by_chance(self, inputs: list[list[Slot]], count: int) -> Sequence[int]:
        """Now and then a call that nobody can foresee."""
        if _system_random.random() > _EXAMINED_BATCHES:
            return []
        call = _system_random.randrange(count)
        slots = (*inputs[call], *self.outputs[call])
        return [call] if sum(slot.nbytes for slot in slots) <= _EXAMINED_BYTES else []

    def _sharing(self, calls: Sequence[int], changed: list[Slot]) -> frozenset[int]:
        """Outputs of these calls that change when this memory does."""
        if not changed:
            return frozenset()
        self._flip(changed)
        other = self._changed_outputs(calls)
        self._flip(changed)  # as they were
        if not other:
            return frozenset()
        # What differs even now was written to by somebody, who has not stopped yet.
        return frozenset(other - self._changed_outputs(calls))

    def _changed_outputs(self, calls: Sequence[int]) -> set[int]:
        """Outputs with memory of their own that are not any more what was fetched."""
        same = [self.room.unchanged(self.child, c, self.outputs[c]) for c in calls]
        return {i for i, own in enumerate(self.own) if own and not all(row[i] for row in same)}

    def _flip(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            self.room.inputs.raw(slot.offset, slot.offset + slot.nbytes).bitwise_not_()
        self.room.settle()

    def written_since(self, call: int) -> bool:
        """Did somebody write to the results of a call after they were fetched?"""
        slots = self.outputs[call]
        spoilt = self._spoilt
        if spoilt is None:
            return not all(self.room.unchanged(self.child, call, slots))
        self.room.fetch(self.child, self.outputs)
        return any(
            own and not self._holds(slot, spoilt.content(call, output, slot.nbytes))
            for output, (slot, own) in enumerate(zip(slots, self.own, strict=True))
        )

    def _holds(self, slot: Slot, content: torch.Tensor) -> bool:
        raw = self.room.outputs.raw(slot.offset, slot.offset + slot.nbytes)
        return same_bits(raw, content.to(raw.device))
