"""Reads a little of every result in the midst of another process's batch.

The copy engines of a GPU work beside its processors, whoever has these at the time. So the judge
can look on while a process computes: it takes nothing from it, and cannot be noticed by it.

Calls that are worked off one after the other complete their results in that order. Results are
read from the last call to the first. So when one is complete, and an earlier one, which is read
later, is not, calls were computed together.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from kernel_smith.evaluation.judge.platform.buffers import POISON

_PIECE = 32  # bytes
_MOST_PIECES = 400  # a microsecond each
_MOST_PER_CALL = 8
_TELLING = 8  # different bytes

_system_random = random.SystemRandom()


class Piece(NamedTuple):
    """A few bytes of a result of one call."""

    call: int
    content: torch.Tensor


class Span(NamedTuple):
    """All that is read of a call, in one piece of the judge's memory."""

    call: int
    bytes: slice


class Looks:
    """What the pieces held: before the calls were asked for, meanwhile, and in the end."""

    def __init__(self, spans: Sequence[Span], look: Callable[[], torch.Tensor]) -> None:
        self._spans = spans
        self._look = look
        self._before = look()
        self._meanwhile: list[torch.Tensor] = []
        self._after = self._before

    def follow(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self._meanwhile.append(self._look())

    def end(self) -> None:
        self._after = self._look()

    def begun_early(self) -> int | None:
        """Return a call whose result was there before it was asked for."""
        return min(self._where(self._before != POISON), default=None)

    def computed_together(self) -> tuple[int, int] | None:
        """Return two calls of which the second was complete before the first.

        That something was written to a result says nothing: its memory may have served an earlier
        call for something else. That it holds its final content does, if that is no constant.
        """
        telling = [
            span for span in self._spans if len(set(self._after[span.bytes].tolist())) >= _TELLING
        ]
        for look in self._meanwhile:
            complete = [s.call for s in telling if torch.equal(look[s.bytes], self._after[s.bytes])]
            latest = max(complete, default=0)
            early = [span.call for span in telling if span.call < latest]
            incomplete = [call for call in early if call not in complete]
            if incomplete:
                return min(incomplete), latest
        return None

    def _where(self, differs: torch.Tensor) -> set[int]:
        return {span.call for span in self._spans if bool(differs[span.bytes].any())}


class ResultWatch:
    """For the results of one captured graph. The pieces are known to nobody else."""

    def __init__(self, results: Sequence[tuple[int, torch.Tensor]]) -> None:
        """`results`: the bytes of each, with the number of its call."""
        pieces = choose_pieces(results)
        self._spans = spans_of(pieces)
        size = sum(piece.content.numel() for piece in pieces)
        self._host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._copies = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            # By itself, and not in a capture as PyTorch manages it, which gives memory back first.
            self._copies.capture_begin(capture_error_mode="thread_local")
            begin = 0
            for _, content in pieces:
                target = self._host[begin : begin + content.numel()]
                target.copy_(content, non_blocking=True)
                begin += content.numel()
            self._copies.capture_end()

    def begin(self) -> Looks:
        return Looks(self._spans, self._look)

    def _look(self) -> torch.Tensor:
        with torch.cuda.stream(self._stream):
            self._copies.replay()
        self._stream.synchronize()
        return self._host.clone()


def choose_pieces(results: Sequence[tuple[int, torch.Tensor]]) -> list[Piece]:
    """Beginning, end and secret places of results, those of later calls first."""
    calls = len({call for call, _ in results})
    each = max(2, min(_MOST_PER_CALL, _MOST_PIECES // max(calls, 1)))
    pieces = []
    for call in sorted({call for call, _ in results}, reverse=True):
        own = [content for number, content in results if number == call]
        for index in range(each):
            content = own[index] if index < len(own) else _system_random.choice(own)
            last = max(content.numel() - _PIECE, 0)
            begin = {0: 0, 1: last}.get(index, _system_random.randint(0, last))
            pieces.append(Piece(call, content[begin : begin + _PIECE]))
    return pieces


def spans_of(pieces: Sequence[Piece]) -> list[Span]:
    """Where the pieces of each call lie when all are put one after the other."""
    spans, begin = [], 0
    for call, own in itertools.groupby(pieces, key=lambda piece: piece.call):
        end = begin + sum(piece.content.numel() for piece in own)
        spans.append(Span(call, slice(begin, end)))
        begin = end
    return spans
