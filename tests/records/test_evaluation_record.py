"""An evaluation says only what its stage has earned."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    Evaluation,
    Reason,
    Stage,
    Timing,
    WorstElement,
)

MakeEvaluation = Callable[..., Evaluation]

without_timing = [r for r in Reason if MEANINGS[r].stage is not Stage.UNSTABLE]


def test_ok_carries_timing_accuracy_and_no_reason(make_evaluation: MakeEvaluation) -> None:
    evaluation = make_evaluation()
    assert evaluation.ok
    assert evaluation.timing is not None
    assert evaluation.timing.speedup.value == 1.52


@pytest.mark.parametrize("missing", ["timing", "accuracy"])
def test_ok_without_its_evidence_is_refused(make_evaluation: MakeEvaluation, missing: str) -> None:
    with pytest.raises(ValidationError, match="accuracy, and timing unless interpreted"):
        make_evaluation(**{missing: None})


def test_ok_in_the_interpreter_carries_accuracy_and_no_timing(
    make_evaluation: MakeEvaluation,
) -> None:
    assert make_evaluation(interpreted=True, timing=None).ok
    with pytest.raises(ValidationError, match="timing unless interpreted"):
        make_evaluation(interpreted=True)


def test_ok_with_a_reason_is_refused(make_evaluation: MakeEvaluation) -> None:
    with pytest.raises(ValidationError, match="no reason"):
        make_evaluation(Reason.WRONG_VALUES, stage=Stage.OK)


@pytest.mark.parametrize("stage", [s for s in Stage if s is not Stage.OK])
def test_failure_without_a_reason_is_refused(make_evaluation: MakeEvaluation, stage: Stage) -> None:
    with pytest.raises(ValidationError, match="needs a reason"):
        make_evaluation(stage=stage, timing=None)


@pytest.mark.parametrize("reason", Reason)
def test_reason_is_accepted_at_its_own_stage_alone(
    make_evaluation: MakeEvaluation, reason: Reason
) -> None:
    own = MEANINGS[reason].stage
    assert not make_evaluation(reason).ok
    for stage in set(Stage) - {own}:
        with pytest.raises(ValidationError, match=r"does not belong|no reason"):
            make_evaluation(reason, stage=stage)


@pytest.mark.parametrize("reason", without_timing)
def test_failure_with_a_timing_is_refused(
    make_evaluation: MakeEvaluation, timing: Timing, reason: Reason
) -> None:
    with pytest.raises(ValidationError, match="must not carry a timing"):
        make_evaluation(reason, timing=timing)


def test_unstable_may_show_the_timing_that_was_too_noisy(make_evaluation: MakeEvaluation) -> None:
    assert make_evaluation(Reason.TOO_NOISY).timing is not None


def test_speedup_is_the_one_against_the_first_baseline(timing: Timing) -> None:
    slower = timing.speedups[0].model_copy(
        update={
            "baseline": "compile",
            "speedup": timing.speedup.model_copy(update={"value": 0.5}),
        }
    )
    both = timing.model_copy(update={"speedups": (slower, *timing.speedups)})
    assert both.speedup.value == 0.5


def test_half_width_is_relative_to_the_estimate(timing: Timing) -> None:
    assert timing.speedup.half_width == pytest.approx(0.03 / 1.52)


def test_records_are_frozen(make_evaluation: MakeEvaluation, accuracy: Accuracy) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        make_evaluation().stage = Stage.CHEATING  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        accuracy.allowed_error = 1.0  # type: ignore[misc]


def test_unknown_fields_are_refused_at_every_depth(make_evaluation: MakeEvaluation) -> None:
    data = make_evaluation().model_dump(mode="json")
    with pytest.raises(ValidationError, match="speed_up"):
        Evaluation.model_validate(data | {"speed_up": 3})
    data["timing"]["speedups"][0]["speedup"]["median"] = 2.0
    with pytest.raises(ValidationError, match="median"):
        Evaluation.model_validate(data)


def test_another_schema_version_is_refused(make_evaluation: MakeEvaluation) -> None:
    data = make_evaluation().model_dump(mode="json")
    with pytest.raises(ValidationError, match="schema_version"):
        Evaluation.model_validate(data | {"schema_version": 2})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 1.5, 0.0])
def test_elements_that_are_not_finite_survive_json(value: float) -> None:
    element = WorstElement(
        workload="w", inputs="author", output=0, index=(3,), got=value, expected=1, allowed=value
    )
    back = WorstElement.model_validate_json(element.model_dump_json())
    assert back == element
    assert str(float(back.got)) == str(value)
