"""Many runs in one store: none is lost when a campaign is stopped, and none is done twice."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.proposers.seed import make_seed
from kernel_smith.records import Budget, Event, RunConfig, StepEvaluated, Task
from kernel_smith.runs.campaign import Campaign, Key, OutOfTime
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine

KEYS = [Key(method, "numbers", seed) for method in ("islands", "greedy") for seed in (1, 2)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


def search(campaign: Campaign, task: Task, config: RunConfig, key: Key, **more: object) -> None:
    chosen = config.model_copy(update={"method": key.arm, "budget": Budget(evaluations=12)})
    begun = begin_with(chosen, task, [program(1.0)], with_seed=False)
    engine = TrivialEngine(speed_of)
    campaign.search(key, task, begun, engine, lambda state: {"nudger": Nudger()}, **more)  # type: ignore[arg-type]


def test_all_combinations_are_searched_and_found_again(
    path: Path, task: Task, config: RunConfig
) -> None:
    with Store.open(path, create=True) as store:
        campaign = Campaign(store)
        work = [partial(search, campaign, task, config, key) for key in KEYS]
        assert campaign.do(work, at_once=2) == []
        again = Campaign(store)
        assert all(again.ended(key) for key in KEYS)
        states = {key: again.state(key) for key in KEYS}
    for key, state in states.items():
        assert state is not None
        assert (state.config.method, state.config.seed) == (key.arm, key.seed)
        assert state.funnel["evaluated"] == 12
    assert not Campaign.ended(again, Key("islands", "numbers", 3))


def test_what_was_stopped_goes_on_and_is_no_other_run(
    path: Path, task: Task, config: RunConfig
) -> None:
    """The first campaign stops after five evaluations, as when its time is up."""
    key = KEYS[0]

    def stops_after_five(state: RunState) -> tuple[TrivialEngine, object]:
        def hear(event: Event, state: RunState) -> None:
            if isinstance(event, StepEvaluated) and state.funnel["evaluated"] == 5:
                first.stop()

        return TrivialEngine(speed_of), hear

    with Store.open(path, create=True) as store:
        first = Campaign(store)
        work = [partial(search, first, task, config, key, watch=stops_after_five)]
        (error,) = first.do(work, at_once=1)
        assert isinstance(error, OutOfTime)
        second = Campaign(store)
        assert not second.ended(key)
        assert second.do([partial(search, second, task, config, key)], at_once=1) == []
        (run,) = store.runs()
    assert run.evaluations == 12 and run.state == "ended"


def test_nothing_is_begun_after_the_deadline(path: Path, task: Task, config: RunConfig) -> None:
    with Store.open(path, create=True) as store:
        late = Campaign(store, deadline=time.monotonic())
        errors = late.do([partial(search, late, task, config, key) for key in KEYS], at_once=2)
        assert len(errors) == len(KEYS)
        assert all(isinstance(error, OutOfTime) for error in errors)
        assert store.runs() == []


def test_one_run_that_fails_leaves_the_others_alone(
    path: Path, task: Task, config: RunConfig
) -> None:
    def broken() -> None:
        raise RuntimeError("the machine caught fire")

    with Store.open(path, create=True) as store:
        campaign = Campaign(store)
        work = [broken, partial(search, campaign, task, config, KEYS[0])]
        (error,) = campaign.do(work, at_once=1)
        assert isinstance(error, RuntimeError)
        assert Campaign(store).ended(KEYS[0])


@pytest.mark.usefixtures("cold_seeds")
def test_a_seed_that_is_being_made_keeps_nobody_waiting(
    path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that waits for its process would take as long as that."""
    start, begun = subprocess.Popen, threading.Event()

    def start_sleeping(command: list[str], **more: Any) -> subprocess.Popen[str]:
        child = start([sys.executable, "-c", "import time; time.sleep(600)"], **more)
        begun.set()
        return child

    monkeypatch.setattr(subprocess, "Popen", start_sleeping)
    failed: list[Exception] = []

    def make() -> None:
        try:
            make_seed(task, "cpu")
        except MissingPrerequisite as error:
            failed.append(error)

    waiting = threading.Thread(target=make)
    waiting.start()
    assert begun.wait(60)
    with Store.open(path, create=True) as store:
        while not failed and waiting.is_alive():
            assert Campaign(store).do([], at_once=1) == []
    waiting.join(60)
    assert failed
