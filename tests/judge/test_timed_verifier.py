"""Results of timed calls: what looks wrong is asked about, but not the same again and again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.judge.inputs import checks
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.pool import make_pool
from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing import verifier
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.records import Task

CALLS = 4
# Every other value lies in the middle between two steps, on the average.
QUANTISE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.round().to(torch.int8)

def get_inputs():
    return [torch.randint(-100, 100, (40, 50)) / 2]
"""


class Results:
    """A participant whose calls have been run: all that a verifier looks at."""

    def __init__(self, rows: list[torch.Tensor]) -> None:
        self.rows = rows

    def outputs(self, call: int) -> list[torch.Tensor]:
        return [self.rows[call]]

    def output_rows(self, calls: int) -> list[torch.Tensor]:
        return [torch.stack(self.rows[:calls]).flatten(1)]

    def inputs_unchanged(self, call: int) -> bool:
        return True

    def parameters_unchanged(self) -> bool:
        return True

    def release(self) -> None: ...


Change = Callable[[torch.Tensor, torch.Tensor], None]
Timing = Callable[[Change], None]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[InputSet]:
    """The sets that the oracle was asked about."""
    sets: list[InputSet] = []
    expect = checks.expect

    def note(reference: Reference, workload: Any, inputs: InputSet, *others: Any) -> Any:
        sets.append(inputs)
        return expect(reference, workload, inputs, *others)

    monkeypatch.setattr(checks, "expect", note)
    monkeypatch.setattr(verifier, "check_descriptions", lambda batch, described: None)
    return sets


@pytest.fixture
def timing(write_task: Callable[..., Task], asked: list[InputSet]) -> Timing:
    return timing_of(write_task(QUANTISE), asked)


def timing_of(task: Task, asked: list[InputSet]) -> Timing:
    """Batches of calls of a kernel whose results are the reference's but for a change."""
    reference = Reference(task)
    budget = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)
    (workload,) = task.workloads
    pool = make_pool(reference, workload, 2, budget, look_at(reference, workload, budget))
    asked.clear()
    candidate, eager = Results([]), Results([])
    verify = TimedVerifier(
        cast(Participant, candidate),
        cast(Participant, eager),
        pool,
        {},
        lambda inputs: None,
    )
    drawn = pool.timing_sets()

    def run(change: Change) -> None:
        sets = list(islice(drawn, CALLS))
        eager.rows = [reference.call(pool.workload, each).tensors[0] for each in sets]
        candidate.rows = [row.clone() for row in eager.rows]
        for row, inputs in zip(candidate.rows, sets, strict=True):
            change(row, inputs.tensors[0])
        verify(sets, cast(Any, SimpleNamespace(calls=CALLS)))

    return run


def move(row: torch.Tensor, where: torch.Tensor, steps: int) -> None:
    """The first value of this kind."""
    row.view(-1)[where.flatten().nonzero()[0]] += steps


def round_the_other_way(row: torch.Tensor, x: torch.Tensor) -> None:
    """One value that lies in the middle: up if it was rounded down."""
    ties = (x.frac() != 0) & (row < x)
    move(row, ties, 1)


def one_step_off(row: torch.Tensor, x: torch.Tensor) -> None:
    move(row, x.frac() == 0, 1)


def two_steps_off(row: torch.Tensor, x: torch.Tensor) -> None:
    move(row, (x.frac() != 0) & (row < x), 2)


def test_the_oracle_is_asked_once_about_values_rounded_differently(
    timing: Timing, asked: list[InputSet]
) -> None:
    for _ in range(5):
        timing(round_the_other_way)
    assert len(asked) == 1


def test_a_step_off_for_no_reason_is_wrong(timing: Timing) -> None:
    with pytest.raises(Rejected):
        timing(one_step_off)


def test_two_steps_are_wrong_whatever_was_forgiven_before(timing: Timing) -> None:
    timing(round_the_other_way)
    with pytest.raises(Rejected):
        timing(two_steps_off)


def ten_off_by_a_step(row: torch.Tensor, x: torch.Tensor) -> None:
    """Less than a hundredth: as a kernel that does nothing, where nearly all results are zero."""
    row[:10, 0].add_(1)


def test_more_than_was_ever_forgiven_is_asked_about(timing: Timing) -> None:
    timing(round_the_other_way)
    with pytest.raises(Rejected):
        timing(ten_off_by_a_step)


FAR = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(-1, keepdim=True)

def get_inputs():
    return [torch.randn(96, 64)]
"""
SMALL = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)
LARGE = Budget(kept=0, at_once=4 << 10, free=1 << 30)


# Beside the usual sets, a variant's errors are large, or nothing: it is compared on its own scale.
@pytest.mark.parametrize("budget", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("share", [0.0, 1.0], ids=["right", "wrong"])
def test_variants_among_timed_calls_are_compared_on_their_own_scale(
    write_task: Callable[..., Task], asked: list[InputSet], budget: Budget, share: float
) -> None:
    reference = Reference(write_task(FAR))
    (workload,) = reference.task.workloads
    pool = make_pool(reference, workload, 2, budget, look_at(reference, workload, budget))
    hidden = len(pool.hand_out_hidden_checks())
    seen = set()
    for _ in range(max(hidden, 4)):
        candidate, eager = Results([]), Results([])
        pair = (cast(Participant, participant) for participant in (candidate, eager))
        verify = TimedVerifier(*pair, pool, {}, lambda inputs: None)
        inputs = verify.take_hidden_check(pool.author.draw())
        assert inputs is not None
        seen.add(inputs.label)
        eager.rows = reference.call(workload, inputs).tensors
        (exact,) = reference.oracle(workload, inputs).tensors
        candidate.rows = [exact.float()]
        candidate.rows[0][-1] *= 1 - share
        batch = cast(Any, SimpleNamespace(calls=1))
        if not share:
            verify([inputs], batch)
            continue
        with pytest.raises(Rejected):
            verify([inputs], batch)
    assert seen


def test_a_variant_that_was_compared_is_let_go_of(
    write_task: Callable[..., Task], asked: list[InputSet]
) -> None:
    """It takes as much memory as all that one call reads."""
    reference = Reference(write_task(FAR))
    (workload,) = reference.task.workloads
    pool = make_pool(reference, workload, 2, LARGE, look_at(reference, workload, LARGE))
    both = Results([])
    pair = (cast(Participant, both), cast(Participant, both))
    verify = TimedVerifier(*pair, pool, {}, lambda inputs: None)
    inputs = verify.take_hidden_check(pool.author.draw())
    assert inputs is not None
    both.rows = reference.call(workload, inputs).tensors
    held = weakref.ref(inputs)
    verify([inputs], cast(Any, SimpleNamespace(calls=1)))
    del inputs
    gc.collect()
    asked.clear()
    assert held() is None


GRID = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.round(x.sum(-1) * 512) / 512


def get_inputs():
    return [torch.randn(10000, 64)]
"""


def test_the_oracle_is_not_asked_about_as_many_steps_as_the_reference_makes(
    write_task: Callable[..., Task], asked: list[InputSet]
) -> None:
    timing = timing_of(write_task(GRID), asked)

    def step_off(row: torch.Tensor, x: torch.Tensor) -> None:
        row[::2000] += 1 / 512

    timing(step_off)
    assert asked == []


def test_more_steps_than_those_are_wrong(
    write_task: Callable[..., Task], asked: list[InputSet]
) -> None:
    timing = timing_of(write_task(GRID), asked)

    def unround(row: torch.Tensor, x: torch.Tensor) -> None:
        row.copy_(x.sum(-1))

    with pytest.raises(Rejected):
        timing(unround)
    assert asked
