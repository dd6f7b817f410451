"""Sweeps in a run: who gets to sweep, for how long, and that their time is counted."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Budget,
    Candidate,
    Evaluation,
    Interval,
    Options,
    RunConfig,
    Sweep,
    Swept,
    Task,
)
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run, fold
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store

SOURCE = "TUNABLES = {'BLOCK': [1, 2, 4, 8, 16, 32, 64]}\nBLOCK = 1\n"
TASK = Task(name="blocks", source="def get_inputs():\n    return []\n")


def block(source: str) -> float:
    return float(source.split("BLOCK = ")[1])


class Judging:
    """An engine for which larger blocks are faster."""

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        future.set_result(made_up(task, candidate, block(candidate.source)))
        return future


class Sweeping(Judging):
    """The same, which can sweep."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def sweep(
        self,
        task: Task,
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
    ) -> Future[Sweep]:
        self.seconds.append(seconds)
        gains = [block(source) / block(parent.source) for source in variants]
        swept = [Swept(gain=Interval(value=gain, low=gain, high=gain)) for gain in gains]
        future: Future[Sweep] = Future()
        future.set_result(Sweep(swept=tuple(swept), seconds=11.0))
        return future


def configured(sweep: bool | None = None, backend: str = "cpp", **limits: float) -> RunConfig:
    return configure(
        TASK,
        backend,
        proposers=["tuner"],
        starts=[Candidate(source=SOURCE)],
        rebudget=lambda budget: Budget(evaluations=4, **limits),
        sweep=sweep,
    )


def searched(engine: Judging, config: RunConfig, store: Path) -> RunState:
    with Store.open(store, create=True) as book, Run.start(book, TASK, config) as run:
        run.search(engine)
        assert fold(book, run.state.run).device_seconds == run.state.device_seconds
        return run.state


def summaries(state: RunState) -> list[str]:
    return [step.proposal.summary for step in state.steps.values()]


def test_the_first_change_of_a_run_is_the_best_of_a_sweep_and_its_time_counts(
    tmp_path: Path,
) -> None:
    engine = Sweeping()
    state = searched(engine, configured(), tmp_path / "runs.sqlite")
    assert summaries(state)[1] == "BLOCK 1 -> 64 (swept 6 configurations)"
    assert state.best is not None and block(state.best.candidate.source) == 64
    assert state.device_seconds >= 11.0 * len(engine.seconds) > 0


@pytest.mark.parametrize("how", ["switched off", "an engine that cannot"])
def test_without_sweeps_values_are_judged_one_by_one(how: str, tmp_path: Path) -> None:
    engine = Sweeping() if how == "switched off" else Judging()
    config = configured(sweep=False if how == "switched off" else None)
    state = searched(engine, config, tmp_path / "runs.sqlite")
    assert len(state.steps) == 4 and not any("swept" in each for each in summaries(state))
    assert state.device_seconds < 11.0


@pytest.mark.parametrize(("limits", "seconds"), [({}, 40.0), ({"device_seconds": 60.0}, 6.0)])
def test_a_sweep_takes_a_share_of_a_short_budget(
    limits: dict[str, float], seconds: float, tmp_path: Path
) -> None:
    engine = Sweeping()
    searched(engine, configured(**limits), tmp_path / "runs.sqlite")
    assert set(engine.seconds) == {seconds}


@pytest.mark.parametrize("wanted", [None, True])
def test_kernels_for_a_gpu_are_swept_only_for_who_asks_for_it(
    wanted: bool | None, tmp_path: Path
) -> None:
    engine = Sweeping()
    searched(engine, configured(sweep=wanted, backend="triton"), tmp_path / "runs.sqlite")
    assert bool(engine.seconds) is bool(wanted)
