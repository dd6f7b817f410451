"""A row of the result: what one arm made of one problem, from the events of its run."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from pathlib import Path

from kernel_smith.bench.suites import Problem
from kernel_smith.records import MEANINGS, Elite, Evaluation, Interval, Stage, Timing
from kernel_smith.records.bench import BenchRow, CaughtProgram, Cost, CurvePoint, Status
from kernel_smith.runs.state import RunState
from kernel_smith.store import OUTSIDE

_LONGEST_MESSAGE = 300
_ALWAYS_TOLD = (Stage.SCREENED_OUT, Stage.CHEATING)


def row_without_run(arm: str, problem: Problem, status: Status, why: str) -> BenchRow:
    """For a problem that nobody worked on. Where its file lies is nobody's concern later."""
    place = problem.task.path if problem.task is not None else None
    if place is not None:
        why = why.replace(f"{Path(place).parent}/", "")
    return BenchRow(
        arm=arm,
        problem=problem.name,
        suite=problem.suite,
        level=problem.level,
        category=problem.category,
        precision=problem.precision,
        task_hash=problem.task.content_hash if problem.task is not None else "",
        status=status,
        why=why,
    )


def row_of(
    arm: str, problem: Problem, state: RunState, trouble: tuple[Status, str] | None = None
) -> BenchRow:
    """`trouble`: how the run came to an end that its events do not tell of, and why."""
    status, why = trouble or _status(state)
    return row_without_run(arm, problem, status, why).model_copy(
        update={
            "run": state.run,
            "cost": cost_of(state),
            "curve": _curve(state),
            "ends": _ends(state),
            "caught": _caught(state),
            "made_up": any(e.made_up for e in _evaluations(state)),
            **(_winner(state) if status == "correct" else {}),
        }
    )


def cost_of(state: RunState) -> Cost:
    usage = state.usage
    return Cost(
        evaluations=state.funnel["evaluated"],
        steps=state.last_step + 1,
        tokens=usage.prompt_tokens + usage.completion_tokens,
        dollars=usage.dollars,
        device_seconds=state.device_seconds,
        seconds=state.seconds,
    )


def winner_of(state: RunState) -> Elite | None:
    """Return the best, or where nothing can be timed the first program that is correct."""
    if state.best is not None:
        return state.best
    return next((elite for elite in state.evaluated.values() if elite.evaluation.ok), None)


def final_evaluation(state: RunState) -> Evaluation | None:
    """Return what is known of the winner last, at full length if it was measured so."""
    if state.confirmation is not None:
        return state.confirmation
    winner = winner_of(state)
    return None if winner is None else winner.evaluation


def _status(state: RunState) -> tuple[Status, str]:
    ended = state.ended or ""
    if state.unfit is not None:
        return state.unfit, ended
    if state.ended is None:
        return "unfinished", "the run has not ended"
    final = final_evaluation(state)
    # One that is measured too noisily is right nevertheless.
    if final is not None and final.stage in (Stage.OK, Stage.UNSTABLE):
        return "correct", ended
    return "incorrect", ended if state.steps else _why_nothing(state)


def _why_nothing(state: RunState) -> str:
    return f"{state.ended}; nobody wrote a program"


def _winner(state: RunState) -> dict[str, object]:
    winner, final = winner_of(state), final_evaluation(state)
    assert winner is not None and final is not None
    shares = [roofline.share for roofline in final.rooflines]
    return {
        "winner": winner.candidate.content_hash,
        "speedups": {} if final.timing is None else _speedups(final.timing),
        "at_length": state.confirmation is not None,
        "limit_share": statistics.fmean(shares) if shares else None,
    }


def _speedups(timing: Timing) -> dict[str, Interval]:
    """What is not a number cannot be averaged, and was not measured."""
    return {
        each.baseline: each.speedup
        for each in timing.speedups
        if each.speedup.value > 0
        and all(map(math.isfinite, (each.speedup.value, each.speedup.low, each.speedup.high)))
    }


def _curve(state: RunState) -> tuple[CurvePoint, ...]:
    return tuple(
        CurvePoint(step=lead.step + 1, speedup=lead.score)
        for lead in state.curve
        if math.isfinite(lead.score)
    )


def _evaluations(state: RunState) -> list[Evaluation]:
    return [step.evaluation for step in state.steps.values() if step.evaluation is not None]


def _ends(state: RunState) -> dict[str, int]:
    ends = Counter(
        each.stage.value if each.reason is None else f"{each.stage.value}/{each.reason.value}"
        for each in _evaluations(state)
    )
    ends["no program"] += state.funnel["dropped"]
    return {end: count for end, count in sorted(ends.items()) if count}


def _caught(state: RunState) -> tuple[CaughtProgram, ...]:
    """Of programs that somebody brought along all that failed, of others what was not honest."""
    found = []
    for step in state.steps.values():
        evaluation = step.evaluation
        if evaluation is None or evaluation.reason is None:
            continue
        brought = step.proposal.proposer in ("start", OUTSIDE)
        if brought or evaluation.stage in _ALWAYS_TOLD:
            message = (evaluation.message or evaluation.log).strip()
            message = message or MEANINGS[evaluation.reason].sentence
            found.append(
                CaughtProgram(
                    program=step.proposal.candidate.name,
                    reason=evaluation.reason,
                    message=message[:_LONGEST_MESSAGE],
                )
            )
    return tuple(found)
