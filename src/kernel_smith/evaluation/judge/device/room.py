"""The device memory that a participant's process shares with the judge.

The process keeps its tensors in chunks of memory that it hands over once. The judge reads results
from there by itself, and poisons them there before they are computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from kernel_smith.evaluation.judge.child import Child, ChildFailed
from kernel_smith.evaluation.judge.room import POISON, matching
from kernel_smith.evaluation.sandbox.arena import Arena, Slot, resolve_dtype
from kernel_smith.evaluation.sandbox.device_memory import DeviceArena, DeviceError, DeviceMemory

_MOST_AT_ONCE = 8  # descriptors that one message carries
_HEADROOM = 1.1


class _Place(NamedTuple):
    chunk: int
    offset: int
    stride: list[int]


class DeviceRoom:
    fetches = True

    def __init__(self) -> None:
        self.inputs: Arena
        self.outputs: Arena
        self._made = False
        self._chunks: list[DeviceMemory] = []
        self._places: list[list[_Place]] = []
        self._usual: Sequence[tuple[int, ...]] = ()

    def make(self, child: Child, input_bytes: int, output_bytes: int, seconds: float) -> None:
        if self._made:
            if self.inputs.size >= input_bytes and self.outputs.size >= output_bytes:
                return
            self._drop_arenas()
        self.inputs = DeviceArena.create(int(_HEADROOM * input_bytes))
        self.outputs = Arena.private(int(_HEADROOM * output_bytes), device="cuda")
        self._made = True
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

    def fetch(self, child: Child, slots: Sequence[Sequence[Slot]]) -> None:
        targets, sources = [], []
        for places, row in zip(self._places, slots, strict=False):
            for place, slot, usual in zip(places, row, self._usual, strict=False):
                found = self._find(place, slot, usual)
                if found is not None:
                    targets.append(self.outputs.view(slot))
                    sources.append(found)
        if targets:
            torch._foreach_copy_(targets, sources)
        self.settle()

    def poison_results(self, slots: Sequence[Sequence[Slot]]) -> None:
        """Where results lie now, so that they must be computed to be there again."""
        for places, row in zip(self._places, slots, strict=False):
            for place, slot in zip(places, row, strict=False):
                if self._holds(place, slot.nbytes):
                    content = self._chunks[place.chunk].content
                    content[place.offset : place.offset + slot.nbytes].fill_(POISON)

    def _find(self, place: _Place, slot: Slot, usual: Sequence[int]) -> torch.Tensor | None:
        """The result as it lies in the process's memory; None if it cannot be there."""
        if slot.nbytes == 0 or not self._holds(place, slot.nbytes):
            return None
        flat = self._chunks[place.chunk].content[place.offset : place.offset + slot.nbytes]
        if place.stride in (list(slot.stride), list(usual)):
            typed = flat.view(resolve_dtype(slot.dtype))
            return typed.as_strided(slot.shape, place.stride)
        return None

    def _holds(self, place: _Place, size: int) -> bool:
        known = 0 <= place.chunk < len(self._chunks)
        return known and place.offset + size <= self._chunks[place.chunk].size

    def settle(self) -> None:
        torch.cuda.synchronize()

    def leave(self) -> None:
        for chunk in self._chunks:
            chunk.close()
        self._chunks.clear()
        self._drop_arenas()

    def _drop_arenas(self) -> None:
        if self._made:
            self.inputs.close()
            self.outputs.close()
            self._made = False


def _place(chunk: Any, offset: Any, stride: Any) -> _Place:
    if not isinstance(chunk, int) or not isinstance(offset, int) or offset < 0:
        raise ValueError("not a place")
    if chunk >= 1 << 16 or offset % 16:
        raise ValueError("no such place")
    return _Place(chunk, offset, [int(step) for step in stride])
