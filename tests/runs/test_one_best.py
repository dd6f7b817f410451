"""One best everywhere: the loop, `runs show`, `runs list` and data sets name the same program.

And the same number of new bests, evaluations and all else that is counted.
"""

from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Event,
    Proposal,
    Reason,
    RunConfig,
    Task,
)
from kernel_smith.runs.run import Run, fold
from kernel_smith.runs.state import RunState
from kernel_smith.store import History, RunFacts, Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine
from kernel_smith.trajectories.lineage import RunIndex

FACTS = [each.name for each in fields(RunFacts) if not each.name.startswith("_")]


class Noisy(TrivialEngine):
    """Says something else each time, and finds many programs that compile to the same."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        super().__init__(self._judged)

    def _judged(self, candidate: Candidate) -> float | Reason:
        if self._rng.random() < 0.1:
            return Reason.DECOY_KERNEL
        if self._rng.random() < 0.1:
            return Reason.TOO_NOISY
        return speed_of(candidate) * self._rng.uniform(0.8, 1.25)

    def submit(self, *asked: Any, **more: Any) -> Future[Evaluation]:
        made = super().submit(*asked, **more).result()
        binary = f"{speed_of(asked[1]):.2f}"
        done: Future[Evaluation] = Future()
        done.set_result(made.model_copy(update={"binary": binary}))
        return done


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in (1, 2))])
def test_all_that_read_a_run_name_the_same_best_after_every_event(
    tmp_path: Path, task: Task, config: RunConfig, seed: int
) -> None:
    bests: set[str] = set()
    config = config.model_copy(update={"budget": Budget(evaluations=25)})  # all is read each time

    def compare(event: Event, state: RunState) -> None:
        mine = state.best.candidate.content_hash if state.best else None
        history = History.of(each for _, each in store.events(state.run))
        assert (history.best.candidate if history.best else None) == mine, event.kind
        (summary,) = store.runs()
        for name in FACTS:
            assert getattr(history, name) == getattr(state, name), (name, event.kind)
        assert summary.evaluations == state.funnel["evaluated"], event.kind
        index = RunIndex.of(store.events(state.run))
        held = [name for name in state.evaluated if index.was_best(name)]
        assert len(held) == state.new_bests, event.kind
        assert summary.best_candidate == mine, event.kind
        assert index.best == mine, event.kind
        if mine is not None:
            assert state.best is not None and history.best is not None
            assert state.best.evaluation.timing is not None
            figures = state.best.evaluation.timing.speedup
            assert (figures, figures) == (history.best.speedup, summary.best), event.kind
            assert state.is_confirmed == history.best.confirmed == summary.confirmed, event.kind
            bests.add(mine)

    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, config) as run:
            first = Proposal(candidate=program(1.0), proposer="start")
            loop = run.evolve({"nudger": Nudger()}, Noisy(seed), compare)
            loop.run([("start", lambda: first)])
            name, found = run.state.run, run.state.best
        with Run.resume(store, name, lambda _: Budget(evaluations=40)) as again:
            again.evolve({"nudger": Nudger()}, Noisy(seed + 100), compare).run([])
        folded = fold(store, name)
    assert len(bests) > 1 or found is None
    assert folded.funnel["twins"] > 0 or found is None
