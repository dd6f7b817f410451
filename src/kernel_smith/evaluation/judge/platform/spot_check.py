"""Looks into a batch of calls at moments that nobody can foresee.

A batch is known in advance: its inputs lie in memory before the first call, and results are read
after the last one. A program could answer several calls at once, in the first of them or in the
last, and read its weights once for all. But every call is entered in a ledger when it returns, and
the judge may stop the process at any moment:

- the results of calls that are entered must be there: they are compared with those in the end;
- inputs of calls that cannot have begun are replaced: who read them too early has read others.

Neither depends on how fast the process, the machine or the judge is. An honest program is right
wherever it is stopped.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.processes.fetching import Piece, fetch
from kernel_smith.evaluation.judge.values.pieces import same_bits

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.platform.participant import Participant

_STOPS = 6  # in a batch that takes no longer than usual
_FEWEST_SECONDS = 150e-6  # between two of them, on average: stopping takes about as long
_MOST_STOPS = 240
_BEGUN_SHARE = 0.25  # of the processor time of a batch: then its first call has begun
_NEXT, _ANY = 2, 2  # calls whose inputs are replaced at one stop
_PEEKED = 4  # calls, at one stop
_PEEKED_BYTES = 64 << 20  # in all

_system_random = random.SystemRandom()


class _Peeked(NamedTuple):
    """What a result held when its call had returned."""

    call: int
    output: int
    raw: torch.Tensor


class SpotCheck:
    """For one batch. `seconds` of processor time that it usually takes: on a busy machine a process
    may not have begun when much time has passed. `draw`: inputs to put in place of a call's."""

    def __init__(self, seconds: float, draw: Callable[[InputSet], InputSet]) -> None:
        self._seconds = seconds
        self._draw = draw
        self._pause = max(seconds / (_STOPS + 1), _FEWEST_SECONDS)
        self._peeked: list[_Peeked] = []
        self._bytes_left = _PEEKED_BYTES
        self.stops = 0
        """How often the process was stopped."""
        self.exchanged = 0
        """How many calls got other inputs in the midst of the batch."""

    def follow(self, participant: Participant) -> None:
        """Stop the process, which is at work, from time to time until it has finished. Who works
        ahead again after each stop is stopped again."""
        child = participant.child
        begun = child.cpu_seconds()
        while self.stops < _MOST_STOPS:
            time.sleep(_system_random.uniform(0, 2 * self._pause))
            if child.has_said_something():
                return
            with child.standing_still():
                self.stops += 1
                self._act(participant, child.cpu_seconds() - begun)

    def _act(self, participant: Participant, worked: float) -> None:
        """Look at a process that stands still, and replace what it may not have read."""
        entered = participant.entered()
        self._peek(participant, entered)
        exchanged = self._exchange(participant, len(entered))
        if worked > _BEGUN_SHARE * self._seconds:
            self.exchanged += exchanged

    def _peek(self, participant: Participant, entered: Sequence[Sequence[int]]) -> None:
        """Read the results of some calls that have returned: the last ones, and any."""
        calls, half = range(len(entered)), _PEEKED // 2
        for call in {*calls[-half:], *_system_random.sample(calls, min(len(calls), half))}:
            places = zip(entered[call], participant.result_slots(call), strict=True)
            for output, (address, slot) in enumerate(places):
                if 0 < slot.nbytes <= self._bytes_left:
                    self._bytes_left -= slot.nbytes
                    raw = torch.zeros(slot.nbytes, dtype=torch.uint8)
                    fetch(participant.child.pid, [Piece(address, raw.data_ptr(), slot.nbytes)])
                    self._peeked.append(_Peeked(call, output, raw))

    def _exchange(self, participant: Participant, entered: int) -> int:
        """Put other inputs in place of those that nobody may have read yet; of how many calls?"""
        first = entered + 1  # one call may be under way
        later = range(first, participant.bound_calls)
        others = later[_NEXT:]
        any_others = _system_random.sample(others, min(len(others), _ANY))
        return sum(
            participant.exchange(call, self._draw(participant.bound(call)))
            for call in [*later[:_NEXT], *any_others]
        )

    def came_late(
        self, participant: Participant, strides: Sequence[Sequence[int]], own: Sequence[bool]
    ) -> int | None:
        """Return a call that was entered in the ledger before its results were there.

        `strides`: those of the reference's results. `own`: which outputs have memory of their own,
        that nothing else may have changed since.
        """
        for call, output, raw in self._peeked:
            result = participant.outputs(call)[output]
            if any(own[output : output + 1]) and not _is_same(raw, result, strides[output]):
                return call
        return None


def _is_same(raw: torch.Tensor, result: torch.Tensor, strides: Sequence[int]) -> bool:
    """Compare them in the usual order of elements, or in that of the reference's results."""
    flat = raw.view(result.dtype)
    if same_bits(flat.view(result.shape), result):
        return True
    last = sum((size - 1) * step for size, step in zip(result.shape, strides, strict=True))
    has_gaps = last >= flat.numel()  # between elements, so not all of them were read
    return has_gaps or same_bits(flat.as_strided(result.shape, strides), result)
