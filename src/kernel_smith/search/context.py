"""Sections of context that most methods give along with a parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_smith.records import Elite, Exemplars, Failures, Lessons, Section, Specialists

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


def context_of(
    state: RunState, parent: str | None, exemplars: tuple[Elite, ...] = ()
) -> tuple[Section, ...]:
    """These programs, what failed from this parent, what the run has learned, and who is faster on
    some workload."""
    sections: list[Section] = []
    if exemplars:
        sections.append(Exemplars(programs=exemplars))
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
