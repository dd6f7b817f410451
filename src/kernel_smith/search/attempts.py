"""What was tried from a program and its ancestors, and what each attempt gained, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kernel_smith.records import Attempt, Elite
from kernel_smith.search.front import workload_scores

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState, Step

_LONGEST = 160


def attempts_of(steps: Iterable[Step], state: RunState) -> Iterator[Attempt]:
    """Yield those that were evaluated, with what their last measuring says."""
    for step in steps:
        if step.evaluation is None:
            continue
        if step.attempt is None:
            step.attempt = _attempt(step, state)
        yield step.attempt


def _attempt(step: Step, state: RunState) -> Attempt:
    child = state.evaluated[step.proposal.candidate.content_hash]
    parent = state.evaluated.get(step.parent or "")
    summary = " ".join(step.proposal.summary.split())[:_LONGEST]
    failed = child.evaluation.reason.value if child.evaluation.reason else ""
    return Attempt(
        summary=summary or "a change",
        failed=failed,
        speedup=child.score,
        gains={} if failed else _gains(child, parent),
    )


def lineage_attempts(state: RunState, parent: str | None, most: int) -> tuple[Attempt, ...]:
    """Return the last ones that were made from a program or from its ancestors and worked,
    slower ones included; the nearest and newest last."""
    found: list[Attempt] = []  # the newest first
    for name in state.lineage(parent):
        made = (step for step in reversed(state.steps_about(name or "")) if step.parent == name)
        worked = (each for each in attempts_of(made, state) if not each.failed)
        found += islice(worked, most - len(found))
        if len(found) >= most:
            break
    return tuple(reversed(found))


def in_words(attempt: Attempt) -> str:
    """One line, for a list."""
    if attempt.failed:
        return f"- {attempt.summary}: failed ({attempt.failed})"
    gains = ", ".join(f"{name} {gain:.2f}" for name, gain in attempt.gains.items())
    over = f"; over its parent: {gains}" if gains else ""
    return f"- {attempt.summary}: {attempt.speedup:.2f}x{over}"


def _gains(child: Elite, parent: Elite | None) -> dict[str, float]:
    """By workload, from what is certain of both."""
    if parent is None:
        return {}
    before = workload_scores(parent)
    return {
        workload: speed / before[workload]
        for workload, speed in workload_scores(child).items()
        if before.get(workload, 0.0) > 0
    }
