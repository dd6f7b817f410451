"""What answers are worth: every part by values that were worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.records import Candidate, DeviceKernel, Evaluation, Interval, Reason, Task
from kernel_smith.training.answers import Answer, Question, question_of, read_answer
from kernel_smith.training.config import RewardSettings
from kernel_smith.training.rewards import gain_value, grade, keep_probability, staged_value


@pytest.fixture
def question(small_task: Task, honest_source: str) -> Question:
    return Question("row-0", small_task, "cpp", Candidate(source=honest_source))


@pytest.fixture
def answer(question: Question, honest_source: str) -> Answer:
    changed = honest_source.replace("y[i]", "y[i + 0]")
    return read_answer(question, f"```python\n{changed}\n```")


def judged(answer: Answer, outcome: float | Reason, parent: float | Reason = 2.0) -> Evaluation:
    """`outcome` and `parent` are speedups over the reference."""
    task, program = answer.question.task, answer.program
    assert program is not None and answer.question.parent is not None
    beside = made_up(task, answer.question.parent, parent)
    return made_up_beside(made_up(task, program, outcome), beside)


def authored(evaluation: Evaluation, part: float) -> Evaluation:
    kernels = (
        DeviceKernel(name="k", origin="authored", launches=1, share=part, seconds=1e-6),
        DeviceKernel(name="l", origin="library", launches=1, share=1 - part, seconds=1e-6),
    )
    return evaluation.model_copy(update={"device_kernels": kernels})


def test_the_certain_gain_over_the_parent_less_one_is_the_reward(answer: Answer) -> None:
    graded = grade(answer, judged(answer, 3.0), RewardSettings())
    assert graded.reward == pytest.approx(0.99 * 1.5 - 1)  # 3 over 2, to within 1%, less 1
    assert graded.gain is not None and graded.gain.value == pytest.approx(1.5)


def test_a_first_program_is_compared_with_the_reference(question: Question, answer: Answer) -> None:
    first = Question(question.id, question.task, question.backend, None)
    assert answer.program is not None
    evaluation = made_up(question.task, answer.program, 3.0)
    graded = grade(Answer(first, "", "program", answer.program), evaluation, RewardSettings())
    assert graded.reward == pytest.approx(0.99 * 3 - 1)


@pytest.mark.parametrize(("scale", "low"), [("linear", 0.0), ("linear", -1.0), ("log2", -3.0)])
@pytest.mark.parametrize("gain", [(1.3, 0.9, 1.8), (0.8, 0.6, 1.1)])
def test_noise_is_worth_as_much_as_no_change(
    answer: Answer, scale: str, low: float, gain: tuple[float, float, float]
) -> None:
    measured = Interval(**dict(zip(("value", "low", "high"), gain, strict=True)))
    evaluation = judged(answer, 2.0)
    assert evaluation.beside is not None
    beside = evaluation.beside.model_copy(update={"gain": measured})
    noisy = evaluation.model_copy(update={"beside": beside})
    settings = RewardSettings.model_validate({"scale": scale, "low": low})
    graded = grade(answer, noisy, settings)
    assert graded.reward == 0
    assert graded.gain == measured


@pytest.mark.parametrize(
    ("gain", "settings", "value"),
    [
        (1.0, {}, 0.0),
        (2.5, {}, 1.5),
        (0.5, {}, 0.0),
        (0.5, {"low": -1.0}, -0.5),
        (50.0, {}, 9.0),
        (4.0, {"scale": "log2"}, 2.0),
        (0.25, {"scale": "log2", "low": -1.0}, -1.0),
        (1.0, {"scale": "log2"}, 0.0),
    ],
)
def test_a_gain_becomes_a_number_that_is_zero_for_no_gain(
    gain: float, settings: dict[str, Any], value: float
) -> None:
    assert gain_value(gain, RewardSettings(**settings)) == pytest.approx(value)


def test_parts_are_weighted_and_summed(answer: Answer) -> None:
    settings = RewardSettings(execution=2.0, rule=0.1, profiling=0.5, staged=0.3)
    graded = grade(answer, authored(judged(answer, 3.0), 0.8), settings)
    assert graded.parts == pytest.approx(
        {"execution": 2 * 0.485, "rule": 0.1, "profiling": 0.4, "staged": 0.3}
    )
    assert graded.reward == pytest.approx(1.77)
    assert graded.coverage == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("reason", "staged"),
    [
        (Reason.FORBIDDEN_CALL, 0.25),
        (Reason.COMPILER_REJECTED, 0.25),
        (Reason.CRASHED, 0.5),
        (Reason.WRONG_VALUES, 0.5),
        (Reason.CALL_TIMEOUT, 0.5),
    ],
)
def test_what_fails_earns_for_its_stage_alone_and_only_if_asked(
    answer: Answer, reason: Reason, staged: float
) -> None:
    evaluation = judged(answer, reason)
    assert staged_value(evaluation) == staged
    assert grade(answer, evaluation, RewardSettings()).reward == 0.0
    graded = grade(answer, evaluation, RewardSettings(staged=0.4, profiling=1.0))
    assert graded.reward == pytest.approx(0.4 * staged)


def test_a_cheat_earns_nothing_or_less(answer: Answer) -> None:
    evaluation = judged(answer, Reason.DECOY_KERNEL)
    generous = RewardSettings(rule=1.0, staged=1.0)
    assert grade(answer, evaluation, generous).reward == 0.0
    assert grade(answer, evaluation, RewardSettings(cheating=-0.5)).reward == -0.5


def test_a_program_without_a_kernel_of_its_own_earns_nothing(question: Question) -> None:
    source = "class ModelNew:\n    def forward(self, x):\n        return x.relu() + 1\n"
    answer = Answer(question, "", "program", Candidate(source=source))
    settings = RewardSettings(rule=1.0, staged=1.0)
    assert grade(answer, judged(answer, 3.0), settings).reward == 0.0


def test_no_reward_is_known_where_nothing_was_measured(answer: Answer) -> None:
    assert grade(answer, judged(answer, Reason.TOO_NOISY), RewardSettings()).reward is None
    failed = grade(answer, judged(answer, 3.0, Reason.WRONG_VALUES), RewardSettings())
    assert failed.reward is None
    assert "the parent failed" in failed.message


def test_an_answer_without_a_program_and_one_without_a_change_are_told_apart(
    question: Question, honest_source: str
) -> None:
    settings = RewardSettings(unparsed=-0.2)
    nothing = read_answer(question, "I cannot do that.")
    assert (nothing.kind, grade(nothing, None, settings).reward) == ("unparsed", -0.2)
    same = read_answer(question, f"```python\n{honest_source}\n```")
    assert (same.kind, grade(same, None, settings).reward) == ("no-op", 0.0)
    commented = honest_source.replace("import torch\n", "import torch  # fast\n", 1)
    reworded = read_answer(question, f"```python\n{commented}\n```")
    assert (reworded.kind, grade(reworded, None, settings).reward) == ("no-op", 0.0)


@pytest.mark.parametrize(("part", "kept"), [(0.0, 0), (0.3, 0), (0.35, 0.5), (0.4, 1), (1, 1)])
def test_lazy_answers_are_kept_with_this_probability(part: float, kept: float) -> None:
    assert keep_probability(part) == pytest.approx(kept)


def test_lazy_answers_are_left_out_only_if_asked(answer: Answer) -> None:
    lazy, busy = (authored(judged(answer, 3.0), part) for part in (0.2, 0.5))
    settings = RewardSettings(reject_lazy=True)
    assert grade(answer, lazy, settings).reward is None
    assert grade(answer, busy, settings).reward == pytest.approx(0.485)
    assert grade(answer, lazy, RewardSettings()).reward == pytest.approx(0.485)


def test_half_of_the_half_lazy_are_left_out_and_always_the_same(answer: Answer) -> None:
    evaluation = authored(judged(answer, 3.0), 0.35)
    settings = RewardSettings(reject_lazy=True)

    def kept() -> list[bool]:
        graded = (grade(answer, evaluation, settings, seed=seed) for seed in range(200))
        return [one.reward is not None for one in graded]

    assert 70 < sum(kept()) < 130
    assert kept() == kept()


def test_a_row_of_another_format_is_refused(rl_rows: list[dict[str, Any]]) -> None:
    from kernel_smith.errors import BadInput

    assert question_of(rl_rows[0]).parent is not None
    with pytest.raises(BadInput, match="row row-0 is no RL row"):
        question_of({**rl_rows[0], "task": "{}"})
