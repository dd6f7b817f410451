"""All methods keep the contract; one that does not is found out; the page that adds one is true."""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.plugins import offered_methods
from kernel_smith.records import Event, RunConfig, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.run import Run, replay
from kernel_smith.runs.state import RunState
from kernel_smith.search import methods
from kernel_smith.search.base import Ask
from kernel_smith.search.methods import METHODS, find_method, make_strategy
from kernel_smith.search.offered import MethodFailed
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


class Lost(Forgetful):
    """Has what is nowhere changed."""

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        return Ask(worker=free[0], parent="somewhere")


class Wordy(Forgetful):
    """Answers with a name alone."""

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Any:
        return free[0]


class Raising(Forgetful):
    """Looks for what is not there, in a call of its own."""

    def next(self, state: RunState, free: Sequence[str], rng: random.Random) -> Ask | None:
        return self._of({})

    def _of(self, nothing: dict[str, Ask]) -> Ask:
        return nothing["better"]


class Deaf(Forgetful):
    def hear(self, event: Event, state: RunState) -> None:
        raise RuntimeError("what was that?")


def offer(monkeypatch: pytest.MonkeyPatch, **offered: Any) -> None:
    monkeypatch.setattr(methods, "offered_methods", lambda: offered)
    monkeypatch.setattr(methods, "load_method", offered.__getitem__)


def test_a_method_that_is_no_method_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, number=3)
    with pytest.raises(MissingPrerequisite, match="number is a int, expected a class"):
        methods.find_method("number")


@pytest.mark.parametrize(
    ("broken", "why", "remedy"),
    [
        (Imperious, "asks 'oracle', who is not free", "ask one of: nudger"),
        (Lost, "has 'somewhere' changed, which is no program of the run", "by its hash"),
        (Wordy, "answers with a str", "an Ask or None"),
        (Raising, "failed in next: KeyError: 'better' (HERE)", "method_suite"),
        (Deaf, "failed in hear(StepProposed): RuntimeError: what was that? (HERE)", "method_suite"),
    ],
)
def test_what_goes_wrong_in_a_method_is_told_with_its_line_and_the_run_is_kept(
    broken: Any, why: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, theirs=broken)
    task = Task(name="numbers", source="class Model: pass")
    config = configure(
        task, "cpp", method="theirs", proposers=["tuner"], starts=[program(1.0)]
    ).model_copy(update={"proposers": {"nudger": 1.0}})
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        with Run.start(store, task, config) as run, pytest.raises(MethodFailed) as caught:
            run.search(TrivialEngine(speed_of), workers={"nudger": Nudger()})
        said, *place = caught.value.what.partition(" (/")
        expected, *marked = f"method theirs {why}".partition(" (HERE)")
        assert said == expected and bool(place[0]) == bool(marked[0])
        if broken is Raising:
            line = Raising._of.__code__.co_firstlineno + 1
            assert caught.value.what.endswith(f"({__file__}:{line})")
        assert remedy in caught.value.hint and "docs/new-method.md" in caught.value.hint
        # The author mends it, and the run goes on with all that it had.
        kept = [event for _, event in store.events(run.state.run)]
        offer(monkeypatch, theirs=METHODS["greedy"])
        with Run.resume(store, run.state.run) as again:
            again.search(TrivialEngine(speed_of), workers={"nudger": Nudger()})
        events = [event for _, event in store.events(run.state.run)]
    assert events[: len(kept)] == kept
    assert again.state.best is not None and again.state.best.score > 1.1


@pytest.mark.parametrize("edits", [3, {"tile-loop": 3}])
def test_settings_that_a_method_cannot_use_are_bad_input(edits: object) -> None:
    task = Task(name="numbers", source="class Model: pass")
    config = configure(task, "cpp", method="plan-edit", starts=[program(1.0)])
    settings = config.settings | {"plan-edit": {"edits": edits}}
    with pytest.raises(BadInput, match="expected a sentence for each named edit"):
        make_strategy(config.model_copy(update={"settings": settings}))


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page's method in a package that offers it as the page says; the page's method file."""
    code, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    offer, declared = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) < 60
    groups = tomllib.loads(offer)["project"]["entry-points"]
    lines = [f"{name} = {value}" for name, value in groups["kernel_smith.methods"].items()]
    about = tmp_path / "my_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(["[kernel_smith.methods]", *lines]))
    (tmp_path / "my_package.py").write_text(code)
    (tmp_path / "mine.toml").write_text(declared)
    monkeypatch.syspath_prepend(tmp_path)
    offered_methods.cache_clear()
    yield str(tmp_path / "mine.toml")
    offered_methods.cache_clear()
    sys.modules.pop("my_package", None)


def test_a_method_that_cannot_be_made_is_bad_input_with_its_line(
    installed: str, tmp_path: Path
) -> None:
    asked = 'config.settings["annealing"]["warmth"]'
    file = tmp_path / "my_package.py"
    made = re.sub(r"config\.settings\S* \S+\.get\(.*\)", asked, file.read_text())
    assert asked in made
    file.write_text(made)
    task = Task(name="numbers", source="class Model: pass")
    config = configure(task, "cpp", method=installed, starts=[program(1.0)])
    with pytest.raises(BadInput, match="annealing cannot be made: KeyError: 'warmth'") as caught:
        make_strategy(config)
    line = 1 + made[: made.index(asked)].count("\n")
    assert f"({file}:{line})" in str(caught.value)
    assert "correct that line, or the settings it is given" in caught.value.hint


def test_the_page_about_new_methods_adds_one_in_less_than_60_lines(
    installed: str, tmp_path: Path
) -> None:
    _, check = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(check, {"Annealing": find_method("annealing")})
    task = Task(name="numbers", source="class Model: pass")
    config = configure(task, "cpp", method=installed, starts=[program(1.0)])
    begun: Any = make_strategy(config)
    assert begun.method._heat == 0.3, "as its file says"
    config = config.model_copy(update={"proposers": {"nudger": 1.0}})
    with (
        Store.open(tmp_path / "runs.sqlite", create=True) as store,
        Run.start(store, task, config) as run,
    ):
        run.search(TrivialEngine(speed_of), workers={"nudger": Nudger()})
        state, replayed = replay(store, run.state.run)
    strategy: Any = replayed
    assert state.config.method == "annealing" and type(strategy.method).__name__ == "Annealing"
    assert run.state.best is not None and run.state.best.score > 1.1
