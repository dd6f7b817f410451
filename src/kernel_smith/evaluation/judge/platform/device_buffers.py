"""The device memory that a participant's process shares with the judge.

The process keeps its tensors in chunks of memory that it hands over once. The judge reads results
from there by itself, and poisons them there before they are computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from kernel_smith.evaluation.judge.platform.buffers import (
    POISON,
    Spoilt,
    matching,
    with_headroom,
)
from kernel_smith.evaluation.judge.platform.result_watch import ResultWatch
from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed, Interrupted
from kernel_smith.evaluation.judge.processes.fetching import Fillings
from kernel_smith.evaluation.judge.values.pieces import same_bits
from kernel_smith.evaluation.sandbox.arena import Arena, Slot, resolve_dtype
from kernel_smith.evaluation.sandbox.device_memory import DeviceArena, DeviceError, DeviceMemory

_MOST_AT_ONCE = 8  # descriptors that one message carries
_HEADROOM = 1.1
_FILLED_ONE_BY_ONE = 64 << 20  # bytes; of smaller results many are filled at once


class _Place(NamedTuple):
    chunk: int
    offset: int
    stride: list[int]


class _Raw(NamedTuple):
    """The bytes of a result."""

    call: int
    output: int
    content: torch.Tensor


class DeviceBuffers:
    fetches = True

    def __init__(self) -> None:
        self.inputs: Arena
        self.outputs: Arena
        self.is_made = False
        self._in_place = False
        self._chunks: list[DeviceMemory] = []
        self._places: list[list[_Place]] = []
        self._usual: Sequence[tuple[int, ...]] = ()
        self._raw: list[_Raw] = []
        self._watch: ResultWatch | None = None
        self._sources: list[torch.Tensor] = []
        self._targets: list[torch.Tensor] = []
        self._by_call: dict[int, list[torch.Tensor]] = {}

    def make(
        self,
        child: Child,
        input_bytes: int,
        output_bytes: int,
        seconds: float,
        *,
        in_place: bool = False,
    ) -> None:
        self._in_place = in_place
        output_bytes = 1 if in_place else output_bytes
        if self.is_made:
            if self.inputs.size >= input_bytes and self.outputs.size >= output_bytes:
                return
            self._drop_arenas()
        self.inputs = DeviceArena.create(with_headroom(input_bytes, _HEADROOM))
        self.outputs = Arena.private(with_headroom(output_bytes, _HEADROOM), device="cuda")
        self.is_made = True
        child.ask("map", seconds, fds=(self.inputs.fd,), sizes=[self.inputs.size])

    def understand(self, reported: Any, calls: int, usual: Sequence[tuple[int, ...]]) -> None:
        self._usual = usual
        try:
            places = [[_place(*result) for result in call] for call in reported]
        except (TypeError, ValueError) as error:
            raise ChildFailed("protocol", f"malformed places of results: {error}") from None
        self._places = matching(places, calls, len(usual))

    def meet_chunks(self, child: Child, seconds: float) -> None:
        """Open the chunks that results lie in and that are not known yet."""
        named = [place.chunk for row in self._places for place in row]
        while max(named, default=-1) >= len(self._chunks):
            answer, fds = child.ask_for_descriptors("chunks", seconds, most=_MOST_AT_ONCE)
            try:
                sizes = [int(size) for size in answer["sizes"]]
                if not sizes:
                    raise ValueError("results lie in memory that was not handed over")
                for size in sizes:
                    self._chunks.append(DeviceMemory.open(fds.pop(0), size))
            except (KeyError, TypeError, ValueError, IndexError, DeviceError) as error:
                raise ChildFailed("protocol", f"malformed memory of results: {error}") from None

    def find_results(self, slots: Sequence[Sequence[Slot]]) -> None:
        """Look up the results, and the memory of the judge's that they belong into."""
        self._targets, self._sources, self._raw, self._by_call = [], [], [], {}
        self._watch = None
        for call, (places, row) in enumerate(zip(self._places, slots, strict=False)):
            found = zip(places, row, self._usual, strict=False)
            for output, (place, slot, usual) in enumerate(found):
                dtype = resolve_dtype(slot.dtype)
                aligned = place.offset % dtype.itemsize == 0
                if slot.nbytes == 0 or not aligned or not self._holds(place, slot.nbytes):
                    continue
                content = self._chunks[place.chunk].content
                raw = content[place.offset : place.offset + slot.nbytes]
                self._raw.append(_Raw(call, output, raw))
                if place.stride in (list(slot.stride), list(usual)):
                    source = raw.view(dtype).as_strided(slot.shape, place.stride)
                    self._by_call.setdefault(call, []).append(source)
                    if not self._in_place:
                        self._sources.append(source)
                        self._targets.append(self.outputs.view(slot))

    def fetch(self, child: Child, slots: Sequence[Sequence[Slot]]) -> None:
        if self._targets:
            torch._foreach_copy_(self._targets, self._sources)
        self.settle()

    def unchanged(self, child: Child, call: int, slots: Sequence[Slot]) -> list[bool]:
        found = self._by_call.get(call, [])
        if self._in_place or len(found) != len(slots):  # nothing was fetched, or not everything
            return [True] * len(slots)
        fetched = self.results(call, slots)
        return [same_bits(now, known) for now, known in zip(found, fetched, strict=True)]

    def spoil(self, child: Child, slots: Sequence[Sequence[Slot]], own: Sequence[bool]) -> Spoilt:
        """Before a replay this is done anyway; here it is done for plain calls."""
        if not self._in_place:  # those of a trusted process are yet to be read
            self.poison_results(own)
            self.settle()
        return Spoilt(Fillings([POISON]))

    def results(self, call: int, slots: Sequence[Slot]) -> list[torch.Tensor]:
        if self._in_place:
            found = self._by_call.get(call, [])
            if len(found) != len(slots):
                raise Interrupted("the reference's process returned results in unknown memory")
            return found
        return [self.outputs.view(slot) for slot in slots]

    def poison_results(self, own: Sequence[bool] | None = None) -> None:
        """Where results lie now, so that they must be computed to be there again."""
        raws = [raw.content for raw in self._raw if own is None or own[raw.output]]
        largest = max((raw.numel() for raw in raws), default=0)
        if largest > _FILLED_ONE_BY_ONE:
            for raw in raws:
                raw.fill_(POISON)
        elif raws:
            poison = raws[0].new_full((largest,), POISON)
            torch._foreach_copy_(raws, [poison[: raw.numel()] for raw in raws])

    def watch(self) -> ResultWatch | None:
        """For results that stay where they are; None if there are none that could be read."""
        if self._watch is None and self._raw:
            self._watch = ResultWatch([(raw.call, raw.content) for raw in self._raw])
        return self._watch

    def _holds(self, place: _Place, size: int) -> bool:
        known = 0 <= place.chunk < len(self._chunks)
        return known and place.offset + size <= self._chunks[place.chunk].size

    def settle(self) -> None:
        torch.cuda.synchronize()

    def leave(self) -> None:
        self._drop_arenas()
        for chunk in self._chunks:
            chunk.close()
        self._chunks.clear()

    def _drop_arenas(self) -> None:
        self._raw, self._sources, self._targets, self._by_call = [], [], [], {}
        self._watch = None
        if self.is_made:
            self.inputs.close()
            self.outputs.close()
            del self.inputs, self.outputs
            self.is_made = False


def _place(chunk: Any, offset: Any, stride: Any) -> _Place:
    if not isinstance(chunk, int) or not isinstance(offset, int) or offset < 0:
        raise ValueError("not a place")
    if chunk >= 1 << 16:
        raise ValueError("no such place")
    return _Place(chunk, offset, [int(step) for step in stride])
