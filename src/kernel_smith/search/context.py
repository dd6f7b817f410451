"""Sections of context that most methods give along with a parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_smith.records import (
    Attempts,
    Elite,
    Exemplars,
    Failures,
    Knowledge,
    Lessons,
    Section,
    Specialists,
    Winner,
)
from kernel_smith.search.attempts import lineage_attempts
from kernel_smith.search.focus import focus_of

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

KNOWLEDGE = "knowledge"
"""Where a run's settings keep the winners of other tasks."""
PLACES = "places"
"""And where more of them are looked for than in the run's own store."""
_ATTEMPTS = 6


def context_of(
    state: RunState, parent: str | None, exemplars: tuple[Elite, ...] = ()
) -> tuple[Section, ...]:
    """These programs, the winners of other tasks, the workload to begin with, what worked and what
    failed from this parent and its ancestors, what the run has learned, and who is faster on some
    workload."""
    sections: list[Section] = []
    if exemplars:
        sections.append(Exemplars(programs=exemplars))
    winners = state.config.settings.get(KNOWLEDGE, {}).get("winners", ())
    if winners:
        known = tuple(Winner.model_validate(each) for each in winners)
        sections.append(Knowledge(winners=known))
    focus = focus_of(state, parent) if parent is not None else None
    if focus is not None:
        sections.append(focus)
    attempts = lineage_attempts(state, parent, _ATTEMPTS) if parent is not None else ()
    if attempts:
        sections.append(Attempts(attempts=attempts))
    failures = state.failures_of(parent)
    if failures:
        sections.append(Failures(failures=failures))
    lessons = state.lessons.lines() if parent is not None else ()
    if lessons:
        sections.append(Lessons(lessons=lessons))
    specialists = {
        workload: state.evaluated[name]
        for workload, name in state.front.specialists().items()
        if parent not in (None, name)
    }
    if specialists:
        sections.append(Specialists(programs=specialists))
    return tuple(sections)
