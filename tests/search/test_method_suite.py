"""All methods keep the contract; one that does not is found out; the page that adds one is true."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.records import Event, RunConfig, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.search import methods
from kernel_smith.search.base import Ask
from kernel_smith.search.methods import METHODS
from kernel_smith.store import Store
from kernel_smith.testing.method_suite import check_method
from kernel_smith.testing.numbers import Nudger, program, speed_of
from kernel_smith.testing.trivial import TrivialEngine

PAGE = Path(__file__).parents[2] / "docs" / "new-method.md"


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_the_contract(name: str) -> None:
    check_method(METHODS[name])


def test_several_asks_may_be_under_way() -> None:
    check_method(METHODS["best-of-n"], evaluations_in_flight=4)


class Forgetful:
    """Knows what it asked for, and not what it heard."""

    def __init__(self, config: RunConfig) -> None:
        self._asked = 0

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        self._asked += 1
        known = [name for name in state.evaluated if state.ranking.score(name) > 0]
        parent = known[self._asked % len(known)] if known else None
        return Ask(worker=free[0], parent=parent)

    def hear(self, event: Event, state: RunState) -> None: ...


class Reckless(Forgetful):
    """Changes what does not work."""

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        return Ask(worker=free[0], parent=next(reversed(state.evaluated), None))


class Imperious(Forgetful):
    """Asks whom it likes."""

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        return Ask(worker="oracle")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Forgetful, "rebuilt from the events"),
        (Reckless, "the parent does not work"),
        (Imperious, "is not free"),
    ],
)
def test_a_method_that_breaks_the_contract_is_found_out(broken: Any, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        check_method(broken)


def test_the_page_about_new_methods_adds_one_in_less_than_60_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, check = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) < 60
    space: dict[str, Any] = {}
    exec(code, space)
    exec(check, space)
    monkeypatch.setattr(methods, "offered_methods", lambda: {"annealing": None})
    monkeypatch.setattr(methods, "load_method", lambda name: space["Annealing"])
    task = Task(name="numbers", source="class Model: pass")
    config = configure(
        task, "cpp", method="annealing", proposers=["tuner"], starts=[program(1.0)]
    ).model_copy(update={"proposers": {"nudger": 1.0}})
    with (
        Store.open(tmp_path / "runs.sqlite", create=True) as store,
        Run.start(store, task, config) as run,
    ):
        run.search(TrivialEngine(speed_of), workers={"nudger": Nudger()})
    assert run.state.config.method == "annealing"
    assert run.state.best is not None and run.state.best.score > 1.1
