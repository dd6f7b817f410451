"""The memory that a participant's process shares with the judge, and how results are read from it.

Inputs are written by the judge into an arena that the process sees. Results lie wherever the
process put them; the judge copies them into an arena of its own, out of the process's reach.
"""

from __future__ import annotations

import mmap
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch

from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed
from kernel_smith.evaluation.judge.processes.fetching import (
    Fillings,
    Piece,
    Place,
    fetch,
    overwrite,
    permitted,
)
from kernel_smith.evaluation.judge.values.pieces import same_bits
from kernel_smith.evaluation.sandbox.arena import Arena, Slot, resolve_dtype

_HEADROOM = 1.35
_WITHOUT_HEADROOM = 64 << 20  # of what is larger, no more is taken than is needed
_COMPARED_AT_ONCE = 16 << 20
POISON = 0xFF  # NaN in every floating point type, -1 or the maximum in every integer type
# What results are overwritten with, chosen anew each time: were it known, memory that holds it
# already would do for outputs with such constants. Far from zero in every type, and not -1.
_SPOILT = range(0x40, 0x80)
_PAGES = range(33, 62)  # until bytes repeat: were it always the same, results could repeat as well
_PROBES = 64  # bytes that are read again, in all results of a batch

_system_random = random.SystemRandom()


@dataclass(frozen=True)
class Spoilt:
    """What results were overwritten with."""

    fillings: Fillings
    begins: dict[tuple[int, int], int] = field(default_factory=dict)  # by call and output
    places: Sequence[tuple[int, int]] = ()  # by address and size, where that is known
    overlapping: frozenset[int] = frozenset()
    """Outputs that changed when another result was overwritten, or another part of them."""

    def content(self, call: int, output: int, size: int) -> torch.Tensor:
        return self.fillings.content(self.begins.get((call, output), 0), size)


class SharedBuffers(Protocol):
    inputs: Arena
    outputs: Arena
    fetches: bool
    """Does the judge read results itself, or must the process copy them?"""
    is_made: bool

    def make(
        self,
        child: Child,
        input_bytes: int,
        output_bytes: int,
        seconds: float,
        *,
        in_place: bool = False,
    ) -> None:
        """Have at least so much room. Making it takes milliseconds, so it is made to last.

        `in_place`: results of a trusted process may be read where they lie, without a copy.
        """

    def results(self, call: int, slots: Sequence[Slot]) -> list[torch.Tensor]:
        """What was fetched of one call's results."""

    def understand(self, reported: Any, calls: int, usual: Sequence[tuple[int, ...]]) -> None:
        """Take note of where the process says that its results are."""

    def fetch(self, child: Child, slots: Sequence[Sequence[Slot]]) -> None:
        """Copy the results from there; what is not there is poison."""

    def unchanged(self, child: Child, call: int, slots: Sequence[Slot]) -> list[bool]:
        """Are the results of a call where the process has them still what was fetched?"""

    def spoil(self, child: Child, slots: Sequence[Sequence[Slot]], own: Sequence[bool]) -> Spoilt:
        """Overwrite the results where the process has them.

        `own`: per output, does it lie in memory of its own? What cannot be overwritten counts as
        never fetched."""

    def settle(self) -> None:
        """Return when all that was written is there for the process to see."""

    def leave(self) -> None:
        """Give the memory back."""


class HostBuffers:
    """Shared memory of the CPU. Results are read from the process's own memory."""

    def __init__(self) -> None:
        self.inputs: Arena
        self.outputs: Arena
        self.fetches = False
        self.is_made = False
        self._places: list[list[ResultAddress]] = []
        self._usual: Sequence[tuple[int, ...]] = ()

    def make(
        self,
        child: Child,
        input_bytes: int,
        output_bytes: int,
        seconds: float,
        *,
        in_place: bool = False,
    ) -> None:
        child.ready()
        if not self.is_made:
            self.fetches = permitted(child.pid)
        elif self.inputs.size >= input_bytes and self.outputs.size >= output_bytes:
            return
        self.leave()
        make_outputs = Arena.private if self.fetches else Arena.create
        self.inputs = Arena.create(with_headroom(input_bytes, _HEADROOM))
        self.outputs = make_outputs(with_headroom(output_bytes, _HEADROOM))
        self.is_made = True
        shared = (self.inputs,) if self.fetches else (self.inputs, self.outputs)
        sizes = [arena.size for arena in shared]
        child.ask("map", seconds, fds=tuple(arena.fd for arena in shared), sizes=sizes)

    def understand(self, reported: Any, calls: int, usual: Sequence[tuple[int, ...]]) -> None:
        """Per call one address, or for each result an address and strides."""
        self._usual = usual
        try:
            rows = [[(call, None)] if isinstance(call, int) else list(call) for call in reported]
            places = [[(_address(address), stride) for address, stride in row] for row in rows]
        except (TypeError, ValueError) as error:
            raise ChildFailed("protocol", f"malformed places of results: {error}") from None
        self._places = matching(places, calls, len(usual))

    def fetch(self, child: Child, slots: Sequence[Sequence[Slot]]) -> None:
        pieces, targets = [], []
        for call, row in enumerate(slots[: len(self._places)]):
            missing = dict(enumerate(row))
            for found in self._found(call, row):
                here = missing.pop(found.output)
                if found.there is not here:
                    self.outputs.view(here).copy_(self._rearranged(child, found))
                elif here.nbytes:
                    address = self.outputs.address(here)
                    pieces.append(Piece(found.address, address, here.nbytes))
                    targets.append(here)
            self._poison(missing.values())
        self._poison(targets[index] for index in fetch(child.pid, pieces))

    def _poison(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self.outputs.raw(slot.offset, slot.offset + slot.nbytes).fill_(POISON)

    def _found(self, call: int, row: Sequence[Slot]) -> Iterator[_Found]:
        """The results of a call that lie in a known order."""
        rows = zip(self._places[call], row, self._usual, strict=False)
        for output, ((address, stride), slot, usual) in enumerate(rows):
            if stride is None or stride == list(slot.stride):
                yield _Found(output, address, slot, slot)
            elif stride == list(usual):
                yield _Found(output, address, Slot(0, slot.shape, usual, slot.dtype), slot)

    def _rearranged(self, child: Child, found: _Found) -> torch.Tensor:
        """A result that lies in memory in the reference's own order, which is not the usual one."""
        there = found.there
        raw = torch.full((there.nbytes,), POISON, dtype=torch.uint8)
        if there.nbytes:
            fetch(child.pid, [Piece(found.address, raw.data_ptr(), there.nbytes)])
        return raw.view(resolve_dtype(there.dtype)).as_strided(there.shape, there.stride)

    def unchanged(self, child: Child, call: int, slots: Sequence[Slot]) -> list[bool]:
        same = [True] * len(slots)
        for found in self._found(call, slots):
            if found.there is found.here:
                same[found.output] = self._is_still_there(child, found)
            else:
                again = self._rearranged(child, found)
                same[found.output] = same_bits(again, self.outputs.view(found.here))
        return same

    def _is_still_there(self, child: Child, found: _Found) -> bool:
        begin, size = found.here.offset, found.here.nbytes
        for start in range(0, size, _COMPARED_AT_ONCE):
            known = self.outputs.raw(begin + start, begin + min(start + _COMPARED_AT_ONCE, size))
            again = torch.full_like(known, POISON)
            fetch(child.pid, [Piece(found.address + start, again.data_ptr(), again.numel())])
            if not same_bits(again, known):
                return False
        return True

    def spoil(self, child: Child, slots: Sequence[Sequence[Slot]], own: Sequence[bool]) -> Spoilt:
        fillings = Fillings(_system_random.sample(_SPOILT, _system_random.choice(_PAGES)))
        results = [
            (call, found)
            for call, row in enumerate(slots[: len(self._places)])
            for found in self._found(call, row)
            if own[found.output] and found.there.nbytes
        ]
        begins = _system_random.choices(range(0, fillings.period, mmap.PAGESIZE), k=len(results))
        places = [
            Place(found.address, found.there.nbytes, begin)
            for (_, found), begin in zip(results, begins, strict=True)
        ]
        failed = set(overwrite(child.pid, places, fillings))
        self._poison(results[number][1].here for number in failed)
        known = [number for number in range(len(results)) if number not in failed]
        others = _not_as_written(child, [places[number] for number in known], fillings)
        overlapping = frozenset(results[known[number]][1].output for number in others)
        pairs = zip(results, begins, strict=True)
        where = {(call, found.output): begin for (call, found), begin in pairs}
        return Spoilt(fillings, where, [(p.address, p.size) for p in places], overlapping)

    def settle(self) -> None:
        """Nothing to wait for: memory is coherent."""

    def results(self, call: int, slots: Sequence[Slot]) -> list[torch.Tensor]:
        return [self.outputs.view(slot) for slot in slots]

    def leave(self) -> None:
        if self.is_made:
            self.inputs.close()
            self.outputs.close()
            del self.inputs, self.outputs  # with their mappings
            self.is_made = False


def _not_as_written(child: Child, places: Sequence[Place], fillings: Fillings) -> set[int]:
    """Look at some bytes anywhere; which places hold something else than was written there?"""
    if not places:
        return set()
    drawn = memoryview(os.urandom(16 * _PROBES)).cast("Q")  # at once: each draw is a system call
    chosen = [number % len(places) for number in drawn[:_PROBES]]
    offsets = drawn[_PROBES:]
    probes = [(n, far % places[n].size) for n, far in zip(chosen, offsets, strict=True)]
    found = torch.zeros(len(probes), dtype=torch.uint8)
    pieces = [
        Piece(places[number].address + offset, found.data_ptr() + index, 1)
        for index, (number, offset) in enumerate(probes)
    ]
    fetch(child.pid, pieces)
    return {
        number
        for (number, offset), byte in zip(probes, found.tolist(), strict=True)
        if byte != fillings.at(places[number].begin + offset)
    }


def with_headroom(size: int, factor: float) -> int:
    """A little more than is needed now, unless it is much."""
    return int(factor * size) if size < _WITHOUT_HEADROOM else size


class _Found(NamedTuple):
    """A result in the memory of the process."""

    output: int
    address: int
    there: Slot  # how it lies there; its offset means nothing
    here: Slot


ResultAddress = tuple[int, list[int] | None]
"""An address in the process, and strides unless they are the usual ones."""


def matching(places: list[list[Any]], calls: int, outputs: int) -> list[list[Any]]:
    """Too many or too few results of a call are nowhere."""
    if len(places) != calls:
        raise ChildFailed("protocol", "the number of results differs from the number of calls")
    return [row if len(row) == outputs else [] for row in places]


def _address(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < 1 << 63:
        raise ValueError("not an address")
    return number
