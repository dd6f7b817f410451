"""What a model is told about the step at hand: one section after the other, as text.

Sections come from the method (`records/request.py`). A prompt that is too long loses the least
important of them: other programs, attempts, failures, slower programs to compare with, then the
log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernel_smith.programs.fold import Folded, fold
from kernel_smith.proposers.model.texts import Templates
from kernel_smith.records import (
    Attempt,
    Attempts,
    Broken,
    Elite,
    Evaluation,
    Failure,
    Focus,
    Knowledge,
    Plan,
    Question,
    Request,
    Summary,
)
from kernel_smith.records.prose import headline, render

Form = Literal["full", "edits"]

_EVALUATION_LENGTH = 8000
_FAILURE_LENGTH = 600
_PLAN_LENGTH = 4000
_SUMMARY_LENGTH = 3000
_WORTH_FOLDING = 40  # lines
_FAR_BEHIND = 0.5  # times the speed of the reference: one change will not do


@dataclass(frozen=True)
class Extent:
    """How much of what may be left out is told."""

    exemplars: int
    failures: int
    knowledge: bool = True
    attempts: bool = True
    contrast: bool = True
    log: bool = True
    lessons: bool = True
    details: bool = True


def extents(request: Request) -> Iterator[Extent]:
    """From the whole story to the least that makes sense."""
    exemplars, failures = len(others_of(request)), len(request.failures)
    whole = Extent(exemplars, failures)
    yield whole
    if request.section(Knowledge) is not None:
        yield replace(whole, knowledge=False)
    yield from (Extent(left, failures, knowledge=False) for left in range(exemplars - 1, -1, -1))
    least = Extent(0, failures, knowledge=False, attempts=False)
    yield least
    yield from (replace(least, failures=left) for left in range(failures - 1, -1, -1))
    least = replace(least, failures=0, contrast=False)
    yield least
    yield (least := replace(least, log=False))
    yield (least := replace(least, lessons=False))
    yield replace(least, details=False)


class StepText:
    """Renders the sections of requests with the texts of these templates."""

    def __init__(self, templates: Templates) -> None:
        self._fill = templates.fill

    def render(self, request: Request, extent: Extent, form: Form, shown: Folded) -> str:
        """`form`: whole programs are asked for, or edits. `shown`: the parent as it is shown."""
        known, parent = self._known(request, extent), self._parent(request, extent, shown)
        return "\n\n".join([*known, *parent, *self._now(request, form)])

    def repair(self, program: Folded, evaluation: Evaluation, form: Form) -> str:
        return self._fill(
            "repair",
            program=fenced(program.text) + self._folded(program) if program.text else "",
            evaluation=told(evaluation),
            request=self._fill(f"repair_{form}"),
        )

    def _known(self, request: Request, extent: Extent) -> Iterator[str]:
        """Programs that are there: of other tasks, of this one, slower ones."""
        knowledge = request.section(Knowledge)
        if extent.knowledge and knowledge is not None:
            shown = "\n\n".join(
                f"For the task {each.task}, {each.speedup:.2f}x:\n\n{fenced(each.source)}"
                for each in knowledge.winners
            )
            yield self._fill("knowledge", programs=shown)
        for number, elite in enumerate(others_of(request)[: extent.exemplars], 1):
            yield self._fill(
                "exemplar",
                number=number,
                verdict=headline(elite.evaluation),
                program=fenced(focused(elite.candidate.source, request).text),
            )
        if extent.contrast and request.contrast:
            slower = (_with_verdict(elite, request) for elite in request.contrast)
            yield self._fill("contrast", programs="\n\n".join(slower))

    def _parent(self, request: Request, extent: Extent, shown: Folded) -> Iterator[str]:
        """Yield the program to change, and what was learned about it."""
        if request.parent is not None:
            evaluation = request.parent.evaluation
            said = told(evaluation, log=extent.log) if extent.details else headline(evaluation)
            yield self._fill(
                "parent",
                program=fenced(shown.text) + self._folded(shown),
                evaluation=said,
                verdict=headline(evaluation),
            )
        focus = focus_of(request)
        if focus is not None:
            yield self._fill("focus", workload=focus.workload, why=focus.why)
        attempts = request.section(Attempts)
        if extent.attempts and attempts is not None:
            yield self._fill("attempts", attempts="\n".join(map(_attempt, attempts.attempts)))
        if extent.attempts and request.specialists:
            yield self._fill("specialists", workloads="\n".join(_specialists(request)))
        if extent.failures:
            yield self._failures(request.failures[-extent.failures :])
        if extent.lessons and request.lessons:
            lessons = "\n".join(f"- {clip(lesson, _FAILURE_LENGTH)}" for lesson in request.lessons)
            yield self._fill("lessons", lessons=lessons)
        summary = request.section(Summary)
        if summary is not None:
            yield self._fill("summary", summary=clip(summary.text, _SUMMARY_LENGTH))

    def _folded(self, shown: Folded) -> str:
        return "\n\n" + self._fill("folded") if shown.hidden else ""

    def _failures(self, failures: Sequence[Failure]) -> str:
        return self._fill("failures", failures="\n".join(map(_failure, failures)))

    def _now(self, request: Request, form: Form) -> Iterator[str]:
        """Yield what is to be done: answer a question, mend a program, carry out a plan, or go
        on."""
        question, broken = request.section(Question), request.section(Broken)
        plan = request.section(Plan)
        if question is not None:
            yield self._fill("question", question=question.text)
        elif broken is not None:
            elite = broken.program
            yield self.repair(Folded(elite.candidate.source), elite.evaluation, form)
        else:
            if plan is not None:
                yield self._fill("plan", plan=clip(plan.text, _PLAN_LENGTH))
            wanted = "first" if request.parent is None else form
            ambition = self._fill("rewrite") if _is_far_behind(request) else self._fill("change")
            yield self._fill(f"request_{wanted}", ambition=ambition)


def others_of(request: Request) -> tuple[Elite, ...]:
    """Return the exemplars that are not the parent."""
    source = request.parent.candidate.source if request.parent is not None else None
    return tuple(elite for elite in request.exemplars if elite.candidate.source != source)


def focus_of(request: Request) -> Focus | None:
    """Return the workload to begin with, where it is for whoever is asked to decide what to
    change: plans and questions may be about any."""
    decided = any(isinstance(part, Question | Plan | Broken) for part in request.context)
    return None if decided else request.section(Focus)


def focused(source: str, request: Request, workload: str | None = None) -> Folded:
    """Return a program without what only other workloads need than the request's focus, or than
    this one; all of it where there is none, or hardly anything would be left out."""
    if workload is None:
        focus = focus_of(request)
        if focus is None:
            return Folded(source)
        workload = focus.workload
    found = fold(source, workload, [other.name for other in request.task.workloads])
    return found if found.lines >= _WORTH_FOLDING else Folded(source)


def told(evaluation: Evaluation, *, log: bool = True) -> str:
    """Return the judge's words, bounded. The verdict comes first, so the end is what is cut.

    They hold what the program itself has printed, so they are fenced like code.
    """
    shown = evaluation if log else evaluation.model_copy(update={"log": ""})
    return fenced(clip(render(shown), _EVALUATION_LENGTH), "text")


def fenced(text: str, tag: str = "python") -> str:
    """Return a code block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{tag}\n{text.rstrip()}\n{fence}"


def clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 4].rstrip() + " ..."


def _is_far_behind(request: Request) -> bool:
    return request.parent is not None and 0 < request.parent.score < _FAR_BEHIND


def _with_verdict(elite: Elite, request: Request) -> str:
    shown = focused(elite.candidate.source, request)
    return f"{headline(elite.evaluation)}\n\n{fenced(shown.text)}"


def _failure(failure: Failure) -> str:
    message = f" {' '.join(failure.message.split())}" if failure.message else ""
    said = f"{failure.stage.value}: {failure.reason.value}.{message}"
    return f"- {failure.summary or 'A change'}: {clip(said, _FAILURE_LENGTH)}"


def _attempt(attempt: Attempt) -> str:
    gains = ", ".join(f"{name} {gain:.2f}x" for name, gain in attempt.gains.items())
    over = f" (of the speed before, by workload: {gains})" if gains else ""
    return f"- {attempt.summary}: {attempt.speedup:.2f}x the reference's speed{over}"


def _specialists(request: Request) -> Iterator[str]:
    for workload, elite in request.specialists.items():
        timing = elite.evaluation.timing
        found = timing.workloads if timing is not None else ()
        for each in found:
            if each.workload == workload:
                yield f"- {workload}: {each.baselines[0].speedup.value:.2f}x"
