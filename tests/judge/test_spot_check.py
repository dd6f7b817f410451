"""What is done to a process that is stopped in the midst of a batch. It is this process here, whose
memory the judge may read as it would another one's."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.platform.spot_check import SpotCheck
from kernel_smith.evaluation.sandbox.arena import Slot, contiguous_stride

CALLS = 12
SHAPE = (3, 4)


class Process:
    """A batch that goes on by one call from one stop to the next; a call takes a second."""

    def __init__(self, at_once: bool = False, forever: bool = False) -> None:
        self.pid = os.getpid()
        self.results = [torch.randn(SHAPE) for _ in range(CALLS)]
        self.at_once, self.forever = at_once, forever
        self.done = 0
        self.bound_calls = CALLS
        self.child = self
        self.exchanged: list[tuple[int, int]] = []  # at how many finished calls, and whose inputs
        self.is_still = False

    def cpu_seconds(self) -> float:
        return float(self.done)

    def has_said_something(self) -> bool:
        return self.done >= CALLS and not self.forever

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        self.is_still = True
        yield
        self.is_still = False
        self.done = min(self.done + 1, CALLS)

    def entered(self) -> list[list[int]]:
        assert self.is_still
        finished = CALLS if self.at_once else self.done
        return [[result.data_ptr()] for result in self.results[:finished]]

    def result_slots(self, call: int) -> list[Slot]:
        return [Slot(0, SHAPE, contiguous_stride(SHAPE), "float32")]

    def outputs(self, call: int) -> list[torch.Tensor]:
        return [self.results[call].clone()]

    def bound(self, call: int) -> InputSet:
        return InputSet([], [], f"bound {call}")

    def exchange(self, call: int, inputs: InputSet) -> bool:
        assert self.is_still
        assert inputs.label.endswith(f"bound {call}"), "in place of this very call's"
        self.exchanged.append((self.done, call))
        return True


def draws() -> Callable[[InputSet], InputSet]:
    numbers = count()
    return lambda bound: InputSet([], [], f"{next(numbers)} in place of {bound.label}")


def looked_into(process: Process, draw: Callable[[InputSet], InputSet]) -> SpotCheck:
    spot = SpotCheck(1e-4, draw)
    spot.follow(cast(Participant, process))
    return spot


def late(process: Process, spot: SpotCheck, *, own: bool = True, **changes: Any) -> int | None:
    strides = changes.get("strides", contiguous_stride(SHAPE))
    return spot.came_late(cast(Participant, process), [strides], [own])


def test_inputs_are_replaced_of_calls_that_cannot_have_begun_and_of_no_others() -> None:
    process = Process()
    spot = looked_into(process, draws())
    assert spot.stops >= CALLS
    assert all(call > done for done, call in process.exchanged), "one may be under way"
    assert {call for _, call in process.exchanged} == set(range(1, CALLS))
    assert (0, 1) in process.exchanged, "the next one, which a program might add to the first"
    assert 0 < spot.exchanged < len(process.exchanged), "at first none may have begun"


def test_a_process_that_never_answers_is_not_stopped_for_ever() -> None:
    assert looked_into(Process(forever=True), draws()).stops < 1000


def test_results_that_were_there_were_not_late() -> None:
    process = Process()
    assert late(process, looked_into(process, draws())) is None


def test_a_result_that_changed_after_its_call_had_returned_is_named() -> None:
    process = Process(at_once=True)
    spot = looked_into(process, draws())
    process.results[CALLS - 1] += 1
    assert late(process, spot) == CALLS - 1
    assert late(process, spot, own=False) is None, "memory that is not the result's alone"


def test_results_in_the_order_of_the_reference_were_not_late() -> None:
    process = Process(at_once=True)
    turned = contiguous_stride(SHAPE[::-1])[::-1]
    process.results = [torch.randn(SHAPE[::-1]).T for _ in range(CALLS)]
    spot = looked_into(process, draws())
    assert late(process, spot, strides=turned) is None
    assert late(process, spot) is not None


@pytest.mark.parametrize("address", [0, 1, 8])
def test_a_result_where_there_is_no_memory_was_late(address: int) -> None:
    class Lost(Process):
        def entered(self) -> list[list[int]]:
            return [[address]] * self.done

    process = Lost()
    assert late(process, looked_into(process, draws())) is not None
