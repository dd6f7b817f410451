"""Steps that are measured again get gains that were timed side by side, and a new verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from step_makers import failure, first_step, gain, later_step, program

from kernel_smith.errors import BadInput
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Options,
    Reason,
    Stage,
    StepGain,
    Task,
    TrainingStep,
)
from kernel_smith.testing.trivial import Judgement, TrivialEngine
from kernel_smith.trajectories.remeasure import remeasure

SPEEDS: dict[str, float | Reason] = {
    program(number).content_hash: 2.0**number for number in range(3)
}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "measured.jsonl"


def judging(**changes: float | Reason) -> Judgement:
    """Program N is 2**N times as fast as the reference; `_1=Reason...`: but program 1 is not."""
    speeds = SPEEDS | {program(int(name[1:])).content_hash: to for name, to in changes.items()}

    def judge(candidate: Candidate) -> float | Reason:
        return speeds[candidate.content_hash]

    return judge


def test_gains_are_those_of_the_same_rounds(cache: Path) -> None:
    first, later = remeasure([first_step(), later_step()], TrivialEngine(judging()), cache)
    assert first.gain is not None and first.gain.overall.value == pytest.approx(4.0)
    assert later.gain is not None and later.gain_over_grandparent is not None
    assert later.gain.side_by_side and later.gain_over_grandparent.side_by_side
    assert later.gain.overall.value == pytest.approx(2.0)
    assert later.gain_over_grandparent.overall.value == pytest.approx(4.0)
    assert later.child.evaluation.beside is not None


def test_what_the_run_had_shown_is_measured_once_more_and_that_counts(cache: Path) -> None:
    engine = TrivialEngine(judging())
    (step,) = remeasure([later_step()], engine, cache)
    assert step.gain is not None and step.gain.measured_again
    assert engine.evaluated == [program(2).content_hash] * 2


DOUBTFUL = (None, gain(1.0), gain(1.3, width=0.35))


class Changing(TrivialEngine):
    """Says something else about one program."""

    def __init__(
        self, judge: Judgement, about: Candidate, change: Callable[[Evaluation], Evaluation]
    ) -> None:
        super().__init__(judge)
        self._about = about
        self._change = change

    def _evaluate(
        self, task: Task, candidate: Candidate, options: Options, beside: Candidate | None
    ) -> Evaluation:
        said = super()._evaluate(task, candidate, options, beside)
        return self._change(said) if candidate == self._about else said


def lucky(evaluation: Evaluation) -> Evaluation:
    assert evaluation.beside is not None
    beside = evaluation.beside.model_copy(update={"gain": gain(1.5).overall})
    return evaluation.model_copy(update={"beside": beside})


@pytest.mark.parametrize("before", DOUBTFUL)
def test_a_gain_that_nothing_had_shown_is_asked_of_the_parent_as_well(
    cache: Path, before: StepGain | None
) -> None:
    engine = TrivialEngine(judging())
    (step,) = remeasure([later_step(gain=before)], engine, cache)
    assert engine.evaluated == [*[program(2).content_hash] * 2, program(1).content_hash]
    assert step.gain is not None and step.gain.measured_again
    assert step.gain.overall.low == pytest.approx(2 / 1.01)


@pytest.mark.parametrize("before", DOUBTFUL)
def test_one_lucky_measuring_of_a_doubtful_step_is_no_gain(
    cache: Path, before: StepGain | None
) -> None:
    engine = Changing(lambda candidate: 1.0, program(2), lucky)
    (step,) = remeasure([later_step(gain=before)], engine, cache)
    assert step.gain is not None and step.gain.overall.certain == 1
    assert list(remeasure([later_step(gain=before)], engine, cache)) == [step]


def test_a_gain_that_the_parent_cannot_confirm_is_not_known(cache: Path) -> None:
    engine = Changing(
        judging(), program(1), lambda said: failure(program(1), Reason.CRASHED, Stage.RUNTIME_ERROR)
    )
    (step,) = remeasure([later_step(gain=None)], engine, cache)
    assert step.gain is None


def test_a_tail_that_cannot_be_compared_stays_as_it_was(cache: Path) -> None:
    step = later_step()
    (again,) = remeasure([step], TrivialEngine(judging()), cache)
    assert step.gain is not None and again.gain is not None
    assert again.gain.p99 == step.gain.p99


def test_what_was_measured_is_not_measured_again(cache: Path) -> None:
    steps = [first_step(), later_step()]
    measured = list(remeasure(steps, TrivialEngine(judging()), cache))
    engine = TrivialEngine(judging())
    assert list(remeasure(steps, engine, cache)) == measured
    assert engine.evaluated == []
    list(remeasure(steps, engine, cache, options=Options(seeds=7)))
    assert len(engine.evaluated) == 3


def test_a_line_that_was_cut_off_is_measured_again(cache: Path) -> None:
    list(remeasure([first_step(), later_step()], TrivialEngine(judging()), cache))
    cache.write_bytes(cache.read_bytes()[:-10])
    for expected in (1, 0):
        engine = TrivialEngine(judging())
        list(remeasure([first_step(), later_step()], engine, cache))
        assert len(engine.evaluated) == expected


def test_a_child_that_fails_now_has_failed(cache: Path) -> None:
    engine = TrivialEngine(judging(_2=Reason.WRONG_VALUES))
    (step,) = remeasure([later_step()], engine, cache)
    assert step.child.evaluation.reason is Reason.WRONG_VALUES
    assert step.gain is None and step.gain_over_grandparent is None
    assert step.flagged == (program(2).content_hash,)


def test_a_parent_that_is_caught_flags_the_step(cache: Path) -> None:
    engine = TrivialEngine(judging(_1=Reason.DECOY_KERNEL))
    (step,) = remeasure([later_step()], engine, cache)
    assert step.child.evaluation.ok
    assert step.gain is None
    assert step.flagged == (program(1).content_hash,)


def test_a_measuring_that_was_too_noisy_is_not_kept(cache: Path) -> None:
    (step,) = remeasure([first_step()], TrivialEngine(judging(_2=Reason.TOO_NOISY)), cache)
    assert step.gain is None and step.flagged == ()
    (step,) = remeasure([first_step()], TrivialEngine(judging()), cache)
    assert step.gain is not None


def test_only_so_many_steps_are_measured_at_once(cache: Path) -> None:
    begun = 0

    def steps() -> Iterator[TrainingStep]:
        nonlocal begun
        for number in range(10):
            begun += 1
            yield later_step(step=number)

    measured = remeasure(steps(), TrivialEngine(judging()), cache, in_flight=3)
    for finished, step in enumerate(measured):
        assert step.step == finished
        assert begun <= finished + 3
    assert begun == 10


@pytest.mark.parametrize("text", ["buy milk\n", "buy milk"])
def test_another_file_is_not_taken_for_measurings(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match="expected evaluations"):
        list(remeasure([later_step()], TrivialEngine(judging()), path))
    assert path.read_text(encoding="utf-8") == text
