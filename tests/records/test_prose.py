"""An evaluation as text: whoever reads it learns what happened and what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    BaselineSpeedup,
    Beside,
    Confinement,
    Diagnostic,
    Evaluation,
    Finding,
    Interval,
    KernelShare,
    Reason,
    Timing,
    WorkloadGain,
)
from kernel_smith.records.durations import seconds
from kernel_smith.records.prose import describe_speedup, render

MakeEvaluation = Callable[..., Evaluation]


@pytest.mark.parametrize("reason", Reason)
def test_a_failure_names_stage_reason_message_and_advice(
    make_evaluation: MakeEvaluation, reason: Reason
) -> None:
    text = render(make_evaluation(reason, message="what exactly was seen"))
    first = text.splitlines()[0]
    meaning = MEANINGS[reason]
    assert first.startswith(f"{meaning.stage.value}: {reason.value}: ")
    assert meaning.sentence in first
    assert "what exactly was seen" in text
    assert f"Advice: {meaning.advice}" in text


def test_ok_leads_with_the_speedup_and_its_interval(make_evaluation: MakeEvaluation) -> None:
    text = render(make_evaluation())
    first = text.splitlines()[0]
    assert first.startswith("ok: correct, 1.52x the speed of eager")
    assert "1.49 to 1.55" in first
    assert "Advice" not in text


def test_ok_shows_accuracy_and_time_per_workload(make_evaluation: MakeEvaluation) -> None:
    text = render(make_evaluation())
    for expected in ("2e-07", "allowed 4e-05", "1e-07", "99.000%", "over 1: 1.000%", "same bits"):
        assert expected in text
    for expected in ("wide: 20 us per call", "P99 30 us", "12 rounds", "960 checked calls"):
        assert expected in text
    for expected in ("30.4 us", "P99 40 us"):
        assert expected in text


def test_an_interval_around_one_shows_no_difference() -> None:
    text = describe_speedup(Interval(value=1.01, low=0.98, high=1.04), "eager")
    assert "no difference shown" in text
    for low, high in ((1.01, 1.04), (0.8, 0.9)):
        clear = describe_speedup(Interval(value=(low + high) / 2, low=low, high=high), "eager")
        assert "no difference" not in clear


def test_several_workloads_get_a_geometric_mean(
    make_evaluation: MakeEvaluation, timing: Timing
) -> None:
    tall = timing.workloads[0].model_copy(update={"workload": "tall"})
    overall = BaselineSpeedup(baseline="eager", speedup=Interval(value=1.25, low=1.2, high=1.3))
    several = timing.model_copy(
        update={"workloads": (*timing.workloads, tall), "speedups": (overall,)}
    )
    text = render(make_evaluation(timing=several))
    assert "tall: 20 us per call" in text
    assert "geometric mean: 1.25x the speed of eager" in text
    assert "geometric mean" not in render(make_evaluation())


def test_an_error_that_is_not_finite_is_called_so(make_evaluation: MakeEvaluation) -> None:
    accuracy = Accuracy(candidate_error=None, reference_error=1e-7, allowed_error=4e-5)
    assert "largest error not finite" in render(
        make_evaluation(Reason.NON_FINITE, accuracy=accuracy)
    )


def test_where_results_have_to_be_equal_no_scale_is_mentioned(
    make_evaluation: MakeEvaluation,
) -> None:
    accuracy = Accuracy(candidate_error=0, reference_error=0, allowed_error=0)
    text = render(make_evaluation(accuracy=accuracy))
    assert "Accuracy: results have to be equal" in text
    assert "scale" not in text


def test_a_repeat_with_other_bits_is_called_so(
    make_evaluation: MakeEvaluation, accuracy: Accuracy
) -> None:
    wobbly = accuracy.model_copy(update={"deterministic": False})
    assert "other bits" in render(make_evaluation(accuracy=wobbly))


def test_every_finding_of_the_screen_is_shown_with_its_line(
    make_evaluation: MakeEvaluation,
) -> None:
    findings = (
        Finding(reason=Reason.FORBIDDEN_IMPORT, line=3, message="imports os"),
        Finding(reason=Reason.FALLBACK, line=14, message="try in forward"),
    )
    text = render(make_evaluation(Reason.FORBIDDEN_IMPORT, findings=findings))
    assert "line 3: forbidden-import: imports os" in text
    assert "line 14: fallback: try in forward" in text


def test_time_shares_are_summed_by_origin(make_evaluation: MakeEvaluation) -> None:
    kernels = (
        KernelShare(module="kernels-0.so", origin="authored", share=0.75, samples=75),
        KernelShare(module="libtorch_cpu.so", origin="library", share=0.12, samples=12),
        KernelShare(module="libgomp.so", origin="library", share=0.128, samples=12),
        KernelShare(module="rare.so", origin="unknown", share=0.002, samples=1),
    )
    text = render(make_evaluation(kernels=kernels))
    assert "75% authored, 25% library" in text
    assert "kernels-0.so" in text
    assert "rare.so" not in text


def test_a_long_log_keeps_its_end(make_evaluation: MakeEvaluation) -> None:
    log = "\n".join(f"row {n}" for n in range(200))
    text = render(make_evaluation(Reason.EXCEPTION, log=log))
    assert "row 199" in text
    assert "row 100" not in text


def test_a_short_log_is_shown_whole(make_evaluation: MakeEvaluation) -> None:
    diagnostic = Diagnostic(line=7, severity="error", message="expected ';'")
    text = render(
        make_evaluation(
            Reason.COMPILER_REJECTED,
            log="candidate.py:7:3: error: expected ';'",
            diagnostics=(diagnostic,),
        )
    )
    assert "candidate.py:7:3: error: expected ';'" in text


def test_notes_and_missing_confinement_are_shown(make_evaluation: MakeEvaluation) -> None:
    text = render(
        make_evaluation(
            notes=("wide: variants outside its domain: large",),
            confinement=Confinement(enforced=("own session",), missing=("no network namespace",)),
        )
    )
    assert "wide: variants outside its domain: large" in text
    assert "Not enforced" in text
    assert "no network namespace" in text
    assert "own session" not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.5, "2.5 s"), (1.0, "1 s"), (0.0123, "12.3 ms"), (4.56e-5, "45.6 us"), (7e-9, "7 ns")],
)
def test_durations_have_a_fitting_unit(value: float, shown: str) -> None:
    assert seconds(value) == shown


def test_what_was_made_up_says_so_before_anything_else(make_evaluation: MakeEvaluation) -> None:
    text = render(make_evaluation().model_copy(update={"made_up": True}))
    assert text.startswith("MADE UP")
    assert "nothing was compiled, run or measured" in text.splitlines()[0]


def test_two_candidates_are_compared_per_workload_and_overall(
    make_evaluation: MakeEvaluation,
) -> None:
    half, twice = Interval(value=0.5, low=0.49, high=0.51), Interval(value=2, low=1.9, high=2.1)
    gains = (
        WorkloadGain(workload="small", gain=half),
        WorkloadGain(workload="large", gain=twice),
    )
    beside = Beside(candidate_hash="f" * 64, gain=twice, workloads=gains)
    text = render(make_evaluation().model_copy(update={"beside": beside}))
    assert "Side by side, in the same rounds: 2.00x the speed of the other program" in text
    assert "small: 0.500x" in text and "large: 2.00x" in text
    judged = make_evaluation().model_copy(update={"beside": beside})
    assert "2.00x the speed of step 3" in render(judged, "step 3")


def test_a_rival_that_could_not_be_timed_is_named_with_the_reason(
    make_evaluation: MakeEvaluation,
) -> None:
    beside = Beside(candidate_hash="f" * 64, reason=Reason.CRASHED, message="killed by SIGSEGV")
    text = render(make_evaluation().model_copy(update={"beside": beside}))
    assert "Not compared with the other program: crashed: killed by SIGSEGV" in text
