"""The judge as an environment: batches, engines that go away, and what is written down."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options
from kernel_smith.testing.trivial import TrivialEngine
from kernel_smith.training.config import RewardSettings
from kernel_smith.training.environment import EngineGone, Environment
from kernel_smith.training.journal import Journal

Rows = list[dict[str, Any]]

_TWICE = 2 * 0.99 - 1  # what is certain of twice as fast, to within 1%


def answer(source: str, number: int) -> str:
    """The program with another number in it, so that answers differ."""
    return f"```python\n{source.replace('+ 1;', f'+ 1 + 0 * {number};')}\n```"


def double(candidate: Candidate) -> float:
    return 2.0 if "0 *" in candidate.source else 1.0


class Failing(TrivialEngine):
    """The first so many evaluations fail with an error, in the order of submission."""

    def __init__(self, *errors: Exception | None) -> None:
        super().__init__(double)
        self.errors = list(errors)

    def submit(self, *arguments: Any, **others: Any) -> Future[Evaluation]:
        error = self.errors.pop(0) if self.errors else None
        if error is None:
            return super().submit(*arguments, **others)
        future: Future[Evaluation] = Future()
        future.set_exception(error)
        return future


def rollouts(folder: Path) -> Rows:
    return [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]


def gone() -> MissingPrerequisite:
    return MissingPrerequisite("no service", hint="start it")


def environment(engine: Any, folder: Path, slept: list[float], patience: float) -> Environment:
    settings = RewardSettings(unparsed=-1.0)
    journal = Journal(folder)
    return Environment(engine, settings, journal, patience=patience, sleep=slept.append)


def test_rewards_come_in_the_order_of_the_answers_of_all_parts_of_a_batch(
    rl_rows: Rows, honest_source: str, tmp_path: Path
) -> None:
    judged = environment(TrivialEngine(double), tmp_path, [], 0)
    judged.begin(rl_rows[:1], ["nothing"])
    judged.begin(rl_rows[1:3], [answer(honest_source, 1), f"```python\n{honest_source}\n```"])
    rewards, shares = judged.finish(5)
    assert rewards == pytest.approx([-1.0, _TWICE, 0.0])
    assert shares["parsed"] == shares["correct"] == shares["faster"] == pytest.approx(1 / 3)
    written = rollouts(tmp_path)
    assert [line["id"] for line in written] == ["row-0", "row-1", "row-2"]
    assert [line["answer"] for line in written] == ["unparsed", "program", "no-op"]
    assert {line["step"] for line in written} == {5}
    assert not (tmp_path / "caught.jsonl").exists()


def test_an_engine_that_comes_back_in_time_goes_unnoticed(
    rl_rows: Rows, honest_source: str, tmp_path: Path
) -> None:
    slept: list[float] = []
    engine = Failing(gone(), None, gone())
    judged = environment(engine, tmp_path, slept, 10)
    judged.begin(rl_rows[:2], [answer(honest_source, 1), answer(honest_source, 2)])
    assert judged.finish(0)[0] == pytest.approx([_TWICE, _TWICE])
    assert slept == [1.0, 2.0]
    assert len(engine.evaluated) == 2  # what was answered is not asked again


def test_patience_ends(rl_rows: Rows, honest_source: str, tmp_path: Path) -> None:
    slept: list[float] = []
    judged = environment(Failing(*(gone() for _ in range(50))), tmp_path, slept, 10)
    judged.begin(rl_rows[:1], [answer(honest_source, 1)])
    with pytest.raises(EngineGone, match="no service") as caught:
        judged.finish(0)
    assert caught.value.hint == "start it"
    assert sum(slept) == 15  # 1 + 2 + 4 + 8: not less than 10


def test_a_program_that_alone_breaks_the_judge_or_is_refused_has_no_reward(
    rl_rows: Rows, honest_source: str, tmp_path: Path
) -> None:
    engine = Failing(InternalError("the judge died"), BadInput("unfit task", hint="mend it"), None)
    judged = environment(engine, tmp_path, [], 0)
    judged.begin(rl_rows[:3], [answer(honest_source, number) for number in range(3)])
    rewards, shares = judged.finish(0)
    assert rewards == [None, None, pytest.approx(_TWICE)]
    assert shares["unknown"] == pytest.approx(2 / 3)


def test_a_judge_that_fails_on_every_program_is_gone(
    rl_rows: Rows, honest_source: str, tmp_path: Path
) -> None:
    judged = environment(Failing(*[InternalError("broken")] * 2), tmp_path, [], 0)
    judged.begin(rl_rows[:2], [answer(honest_source, number) for number in range(2)])
    with pytest.raises(EngineGone, match="broken"):
        judged.finish(0)


def test_a_real_judge_rewards_a_real_answer(
    engine: LocalEngine, quick: Options, rl_rows: Rows, honest_source: str, tmp_path: Path
) -> None:
    """A wrong program has no gain; a right one is timed beside its parent."""
    settings = RewardSettings(staged=1.0, low=-1.0)
    judged = Environment(_InAThread(engine), settings, Journal(tmp_path), options=quick)
    wrong = answer(honest_source.replace(": 0) + 1;", ": 0) + 2;"), 1).replace("+ 2;", "+ 2 + 0;")
    judged.begin(rl_rows[:2], [answer(honest_source, 1), wrong])
    (right, failed), shares = judged.finish(0)
    assert right is not None and right > 0.0
    assert failed == 0.5  # it compiles
    assert shares["correct"] == 0.5
    first, second = rollouts(tmp_path)
    assert first["gain"] > 0
    assert second["reason"] == "wrong-values"


class _InAThread:
    """The judge of the test run as an engine that can be submitted to."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine

    def submit(
        self, task: Any, candidate: Any, options: Any = None, *, beside: Any = None
    ) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        future.set_result(self._engine.evaluate(task, candidate, options, beside=beside))
        return future
