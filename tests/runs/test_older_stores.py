"""Runs that earlier versions stored are read, such as those that the project keeps."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from kernel_smith.records import StepProposed
from kernel_smith.runs.run import replay
from kernel_smith.search.islands.islands import Islands
from kernel_smith.store import Store

KEPT = Path(__file__).parents[2] / "results" / "training"


@pytest.fixture(params=["steps_told.sqlite", "steps_leaps.sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A copy, since opening a store brings its tables up to date."""
    path = tmp_path / request.param
    shutil.copy(KEPT / request.param, path)
    return Store.open(path)


def test_a_run_that_was_stored_earlier_can_be_gone_on_with(store: Store) -> None:
    with store:
        for summary in store.runs():
            state, strategy = replay(store, summary.id)
            assert state.config.method == "islands" and isinstance(strategy, Islands)
            assert state.funnel["evaluated"] == summary.evaluations > 0
            assert state.best is not None
            assert state.best.candidate.content_hash == summary.best_candidate
            asked = strategy.next(state, tuple(state.config.proposers), random.Random(0))
            assert asked is not None and asked.parent in state.evaluated
            assert asked.parent in strategy.archive


def test_the_island_of_a_step_is_its_label_now(store: Store) -> None:
    with store:
        run = store.runs()[0].id
        proposed = [event for _, event in store.events(run) if isinstance(event, StepProposed)]
    assert proposed
    assert all(set(event.label) == {"island"} for event in proposed)
