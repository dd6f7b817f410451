"""What became of the proposals of a run of the training experiment."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernel_smith.records import Evaluation, RunStarted, Stage, StepDropped, StepEvaluated
from kernel_smith.records.gains import gain_over
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store

SHARES = ("parsed", "repeated", "compiled", "correct", "faster", "cheating")


class Told(NamedTuple):
    """The first proposals of a run, and what it had come to by then."""

    proposals: list[dict[str, Any]]
    best_by_steps: float  # the best program over the start: the gains on the way, multiplied
    ended: bool


def told_of(store: Store, run: str, most: int) -> Told:
    """What became of each proposal, in the order in which that was known."""
    events = (event for _, event in store.events(run))
    first = next(events)
    assert isinstance(first, RunStarted)
    state = RunState.begin(first)
    rows: list[dict[str, Any]] = []
    over_start: dict[str, float] = {}
    for event in events:
        if isinstance(event, StepDropped | StepEvaluated) and len(rows) == most:
            break
        step = state.apply(event)
        if isinstance(event, StepDropped):
            again = event.why == "the program is known"
            rows.append(_outcome(None, None, parsed=again) | {"repeated": again, "why": event.why})
        elif isinstance(event, StepEvaluated) and step is not None:
            child = event.evaluation
            if step.parent is None:
                over_start[child.candidate_hash] = 1.0
                continue
            row = _outcome(child, state.evaluated[step.parent].evaluation, parsed=True)
            rows.append(row | {"summary": step.proposal.summary})
            if child.ok:
                over_start[child.candidate_hash] = over_start[step.parent] * row["gain"]
    best = over_start[state.best.candidate.content_hash] if state.best else 1.0
    return Told(rows, best, state.ended is not None)


def _outcome(
    child: Evaluation | None, parent: Evaluation | None, *, parsed: bool
) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(SHARES, False) | {"parsed": parsed, "gain": 0.0}
    if child is None or parent is None:
        return row
    gain = gain_over(child, parent)
    row["compiled"] = child.stage not in (Stage.SCREENED_OUT, Stage.COMPILE_ERROR)
    row["correct"] = child.ok
    row["cheating"] = child.stage is Stage.CHEATING
    row["faster"] = gain is not None and gain.overall.low > 1
    row["gain"] = gain.overall.value if gain is not None else 0.0
    row["side_by_side"] = gain is not None and gain.side_by_side
    return row | {"stage": child.stage.value, "reason": child.reason and child.reason.value}
