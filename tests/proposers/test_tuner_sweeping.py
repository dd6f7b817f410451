"""The tuner with sweeps: what is tried out, what is proposed of it, and what a replay restores."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from timed_evaluations import evaluated

from kernel_smith.errors import InternalError
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.tuner import Tuner
from kernel_smith.proposers.tuner.find import find
from kernel_smith.proposers.tuner.space import Values
from kernel_smith.proposers.tuner.sweeping import CONFIGURATIONS
from kernel_smith.records import (
    Candidate,
    Elite,
    Interval,
    Proposal,
    Reason,
    Request,
    Sweep,
    Swept,
    Task,
)

SOURCE = """TUNABLES = {"A": [1, 2, 4, 8, 16], "B": [1, 2, 4, 8, 16], "C": [1, 2, 3, 4]}
A = 1
B = 1
C = 1
"""
TASK = Task(name="anything", source="def get_inputs():\n    return []\n")

Speed = Callable[[Values], float]


def hill(values: Values) -> float:
    """Twice as fast with each step of A, a little faster with B, and broken where C is 3."""
    return float(values["A"]) * (1 + float(values["B"]) / 100)


class Bench:
    """Tries variants out on a landscape that is made up."""

    def __init__(self, speed: Speed = hill, width: float = 0.01) -> None:
        self.speed = speed
        self.width = width
        self.sweeps: list[list[Values]] = []

    def __call__(self, task: Task, parent: Candidate, variants: Sequence[str]) -> Sweep:
        batch = [find(source).current for source in variants]
        self.sweeps.append(batch)
        base = self.speed(find(parent.source).current)
        return Sweep(swept=tuple(self._swept(values, base) for values in batch), seconds=7.0)

    def _swept(self, values: Values, base: float) -> Swept:
        if values["C"] == 3:
            return Swept(reason=Reason.CRASHED)
        gain = self.speed(values) / base
        return Swept(gain=Interval(value=gain, low=gain - self.width, high=gain + self.width))


def elite(source: str = SOURCE, speed: Speed = hill) -> Elite:
    candidate = Candidate(source=source)
    return Elite(candidate=candidate, evaluation=evaluated(candidate, speed(find(source).current)))


def request(parent: Elite | None = None, seed: int = 0) -> Request:
    return Request(task=TASK, backend="cpp", parent=parent or elite(), seed=seed)


def judge(tuner: Tuner, proposal: Proposal, speed: Speed = hill) -> Elite:
    judged = elite(proposal.candidate.source, speed)
    tuner.learn(proposal, judged.evaluation)
    return judged


def propose_if_any(tuner: Tuner, parent: Elite, seed: int) -> Proposal | None:
    try:
        return tuner.propose(request(parent, seed))
    except NothingToPropose:
        return None


def test_the_best_two_of_a_sweep_are_proposed_and_nothing_that_was_not_swept() -> None:
    bench = Bench()
    tuner = Tuner(try_out=bench)
    first, second = tuner.propose(request()), tuner.propose(request(seed=1))
    (batch,) = bench.sweeps
    assert len(batch) == CONFIGURATIONS and find(SOURCE).current not in batch
    ranked = sorted((values for values in batch if values["C"] != 3), key=hill, reverse=True)
    assert {hill(proposal.details["values"]) for proposal in (first, second)} == {
        hill(ranked[0]),
        hill(ranked[1]),
    }
    assert f"(swept {CONFIGURATIONS} configurations)" in first.summary
    assert (first.device_seconds, second.device_seconds) == (7.0, 0.0)
    assert "swept" not in second.summary


def test_lines_through_the_best_are_swept_first() -> None:
    bench = Bench()
    Tuner(try_out=bench).propose(request())
    lines = [{"A": 1, "B": 1, "C": 1} | {name: 2} for name in "ABC"]
    assert all(values in bench.sweeps[0] for values in lines)


def test_sweeps_go_on_from_what_was_better_until_one_finds_nothing() -> None:
    bench = Bench()
    tuner, best = Tuner(try_out=bench), elite()
    judged = 0
    while (proposal := propose_if_any(tuner, best, seed=judged)) is not None:
        judged += 1
        best = max(best, judge(tuner, proposal), key=lambda one: one.score)
    assert hill(find(best.candidate.source).current) == 16 * 1.16
    assert judged <= 6, "what is judged is what sweeps have chosen"
    swept = [frozenset(values.items()) for batch in bench.sweeps for values in batch]
    assert len(swept) == len(set(swept)), "nothing is swept twice"


def test_where_nothing_is_faster_nothing_is_proposed_and_the_time_is_told() -> None:
    bench = Bench(speed=lambda values: 1.0)
    tuner = Tuner(try_out=bench)
    flat = elite(speed=bench.speed)
    with pytest.raises(NothingToPropose, match="swept 48 configurations, and none") as nothing:
        tuner.propose(request(flat))
    assert nothing.value.device_seconds == 7.0
    with pytest.raises(NothingToPropose, match="have not helped for long"):
        tuner.propose(request(flat, seed=1))
    assert len(bench.sweeps) == 1


def test_what_may_be_luck_is_not_proposed() -> None:
    bench = Bench(speed=lambda values: 1.0 + float(values["A"]) / 100, width=0.5)
    with pytest.raises(NothingToPropose, match="none is faster"):
        Tuner(try_out=bench).propose(request(elite(speed=bench.speed)))


def test_only_the_program_that_leads_is_swept() -> None:
    bench = Bench()
    tuner = Tuner(try_out=bench)
    leader = elite(SOURCE.replace("A = 1", "A = 8") + "# another\n")
    tuner.propose(request(leader))
    proposal = tuner.propose(request())
    assert len(bench.sweeps) == 1
    assert "sweep" not in proposal.details and proposal.device_seconds == 0


@pytest.mark.parametrize("how", ["problem", "raises", "too late"])
def test_without_a_sweep_the_tuner_goes_on_as_before(how: str) -> None:
    asked = []

    def fail(task: Task, parent: Candidate, variants: Sequence[str]) -> Sweep:
        asked.append(variants)
        if how == "raises":
            raise InternalError("the judge is gone")
        if how == "problem":
            return Sweep(problem="no clock")
        return Sweep(swept=tuple(Swept() for _ in variants), seconds=1.0)

    tuner = Tuner(try_out=fail, patience=1000)
    found = [tuner.propose(request(seed=seed)) for seed in range(30)]
    assert len({proposal.candidate.content_hash for proposal in found}) == 30
    assert len(asked) == 1, "what failed once is not tried again"
    assert found[0].details["not_swept"]
    assert found[0].device_seconds == (1.0 if how == "too late" else 0.0)


def test_a_replay_restores_what_a_sweep_showed() -> None:
    bench = Bench()
    first = Tuner(try_out=bench)
    proposal, second_best = first.propose(request()), first.propose(request(seed=1))
    stored = Proposal.model_validate(json.loads(proposal.model_dump_json()))
    assert stored == proposal
    again = Tuner(try_out=bench)
    judge(again, stored)
    assert again.propose(request(seed=1)).candidate == second_best.candidate
    assert len(bench.sweeps) == 1, "it is not repeated"
    best = elite(proposal.candidate.source)
    while (proposal := propose_if_any(again, best, seed=len(bench.sweeps))) is not None:
        best = max(best, judge(again, proposal), key=lambda one: one.score)
    swept = [frozenset(values.items()) for batch in bench.sweeps for values in batch]
    assert len(swept) == len(set(swept)), "nothing is swept twice"


def test_whoever_asks_during_a_sweep_gets_the_second_best_and_nobody_else_waits() -> None:
    begun, go_on = threading.Event(), threading.Event()
    bench = Bench()

    def slowly(task: Task, parent: Candidate, variants: Sequence[str]) -> Sweep:
        begun.set()
        assert go_on.wait(30)
        return bench(task, parent, variants)

    tuner = Tuner(try_out=slowly)
    earlier = Tuner().propose(request())
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(tuner.propose, request(seed=seed)) for seed in range(2)]
        assert begun.wait(30)
        tuner.learn(earlier, evaluated(earlier.candidate, 0.5))
        go_on.set()
        found = {future.result(30).candidate.content_hash for future in asked}
    assert len(found) == 2 and len(bench.sweeps) == 1
