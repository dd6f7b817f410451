"""Looks at results in the midst of a batch: who works off calls one by one is never accused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.platform.buffers import POISON
from kernel_smith.evaluation.judge.platform.quiet import check_one_by_one
from kernel_smith.evaluation.judge.platform.result_watch import Looks, choose_pieces, spans_of
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.records import Reason

CALLS, BYTES = 6, 64
FINAL = torch.arange(BYTES, dtype=torch.uint8)


class Device:
    """Results of several calls, the byte that each is to hold, and a hand that writes them."""

    def __init__(self) -> None:
        self.results = [torch.full((BYTES,), POISON, dtype=torch.uint8) for _ in range(CALLS)]
        pieces = choose_pieces(list(enumerate(self.results)))
        self._contents = [piece.content for piece in pieces]
        self._spans = spans_of(pieces)

    def look(self) -> torch.Tensor:
        return torch.cat(self._contents).clone()

    def write(self, call: int, begin: int = 0, end: int = BYTES, *, wrongly: bool = False) -> None:
        self.results[call][begin:end] = 0 if wrongly else FINAL[begin:end]

    def begin(self) -> Looks:
        return Looks(self._spans, self.look)


def follow(device: Device, steps: list[tuple[int, int, int]]) -> Looks:
    """With a look after each step."""
    looks, left = device.begin(), list(steps)

    def is_over() -> bool:
        if left:
            device.write(*left.pop(0))
            return False
        return True

    looks.follow(is_over)
    looks.end()
    return looks


@given(st.lists(st.integers(1, BYTES - 1), min_size=CALLS, max_size=CALLS))
def test_calls_one_after_the_other_are_in_order(cuts: list[int]) -> None:
    steps = []
    for call, cut in enumerate(cuts):
        steps += [(call, 0, cut), (call, cut, BYTES)]
    check_one_by_one(follow(Device(), steps))


def test_a_result_that_is_there_before_the_start_was_begun_early() -> None:
    device = Device()
    device.write(3)
    with pytest.raises(Rejected, match="call 3 of a batch had a result before") as caught:
        check_one_by_one(follow(device, [(call, 0, BYTES) for call in range(CALLS)]))
    assert caught.value.reason is Reason.BACKGROUND_WORK


def test_two_calls_that_are_written_at_a_time_were_computed_together() -> None:
    halves = [(0, 0, BYTES), (1, 0, 32), (2, 0, 32), (2, 32, BYTES), (1, 32, BYTES)]
    rest = [(call, 0, BYTES) for call in range(3, CALLS)]
    with pytest.raises(Rejected, match="call 2 of a batch was complete when call 1") as caught:
        check_one_by_one(follow(Device(), halves + rest))
    assert caught.value.reason is Reason.DEFERRED_WORK


def test_memory_that_served_an_earlier_call_before_says_nothing() -> None:
    device = Device()
    looks = device.begin()
    steps = iter(range(CALLS))

    def is_over() -> bool:
        call = next(steps, None)
        if call is None:
            return True
        device.write(CALLS - 1, wrongly=True)
        device.write(call)
        return False

    looks.follow(is_over)
    looks.end()
    check_one_by_one(looks)


def test_a_constant_is_complete_too_soon_to_tell() -> None:
    device = Device()
    looks = device.begin()
    device.write(3, wrongly=True)
    looks.follow(iter([False, True]).__next__)
    for call in range(CALLS):
        device.write(call, wrongly=call == 3)
    looks.end()
    check_one_by_one(looks)


def test_a_call_out_of_turn_is_seen() -> None:
    steps = [(call, 0, BYTES) for call in (1, 0, 2, 3, 4, 5)]
    assert follow(Device(), steps).computed_together() == (0, 1)


def test_a_result_that_looks_like_the_poison_is_nobodys_fault() -> None:
    device = Device()
    looks = device.begin()
    looks.follow(lambda: True)
    looks.end()
    check_one_by_one(looks)


@given(st.integers(1, 500), st.integers(1, 3))
def test_pieces_are_few_and_cover_every_call_last_ones_first(calls: int, outputs: int) -> None:
    results = [(call, torch.zeros(40)) for call in range(calls) for _ in range(outputs)]
    pieces = choose_pieces(results)
    assert [piece.call for piece in pieces] == sorted((p.call for p in pieces), reverse=True)
    assert {piece.call for piece in pieces} == set(range(calls))
    assert len(pieces) <= max(400, 2 * calls)
