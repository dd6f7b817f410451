"""What a model is told: first all that stays the same over a run, then the step at hand.

Servers keep the beginning of a prompt that they have seen, so what is stable comes first. A prompt
that is too long loses the least important parts: other programs, failures, slower programs to
compare with, then the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.config import Settings
from kernel_smith.proposers.model.ledger import CHARACTERS_PER_TOKEN, estimate_tokens
from kernel_smith.proposers.model.texts import Templates
from kernel_smith.records import (
    Broken,
    Elite,
    Evaluation,
    Failure,
    Message,
    Plan,
    Precision,
    Question,
    Request,
    Summary,
    Task,
)
from kernel_smith.records.prose import headline, render

_EVALUATION_LENGTH = 8000
_FAILURE_LENGTH = 600
_LEAST_SHOWN = 400
_PLAN_LENGTH = 4000
_SUMMARY_LENGTH = 3000

_PRECISION = {
    Precision.STRICT: "Precision is strict: compute and accumulate in the inputs' own dtypes or "
    "better. TF32 and half precision are not allowed for float32.",
    Precision.TF32: "Inputs and parameters may be rounded to TF32 on the way to the result.",
    Precision.BF16: "Inputs and parameters may be rounded to bfloat16 on the way to the result.",
    Precision.FP16: "Inputs and parameters may be rounded to float16 on the way to the result.",
}


@dataclass(frozen=True)
class Prompt:
    messages: tuple[Message, ...]
    exemplars: tuple[Elite, ...]  # those that it shows


@dataclass(frozen=True)
class _Plan:
    """How much of what may be left out is told."""

    exemplars: int
    failures: int
    contrast: bool = True
    log: bool = True
    lessons: bool = True
    details: bool = True


class Prompts:
    """Makes the messages of a request, within the settings' bound."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._templates = Templates(settings.templates)
        self._stable: dict[tuple[int, str, str], tuple[Task, str]] = {}

    def build(self, request: Request) -> Prompt:
        """The messages to begin with. Raises `BadInput` if task and parent alone are too long."""
        stable = self._system(request.task, request.backend, request.hardware)
        system = Message(role="system", content=stable)
        size = 0
        for plan in _plans(request):
            user = Message(role="user", content=self._step(request, plan))
            messages = (system, user)
            size = tokens_of(messages)
            if size <= self._settings.max_prompt_tokens:
                return Prompt(messages, _others(request)[: plan.exemplars])
        raise BadInput(
            f"the task and the program alone take about {size} tokens, and max_prompt_tokens is "
            f"{self._settings.max_prompt_tokens}",
            hint=f"set max_prompt_tokens to {size} or more",
        )

    def retry(self, messages: tuple[Message, ...], answer: str, reason: str) -> tuple[Message, ...]:
        """The conversation with the request to answer again; a long answer is cut to fit."""
        request = Message(role="user", content=self._templates.fill("retry", reason=reason))
        room = self._settings.max_prompt_tokens - tokens_of((*messages, request))
        shown = _clip(answer, max(_LEAST_SHOWN, int(room * CHARACTERS_PER_TOKEN)))
        said = Message(role="assistant", content=shown or "(nothing)")
        return (*messages, said, request)

    def repair(self, program: str, evaluation: Evaluation) -> Message:
        """The request to mend. `program` may be empty if the conversation shows it."""
        content = self._templates.fill(
            "repair",
            program=fenced(program) if program else "",
            evaluation=told(evaluation),
            request=self._templates.fill(f"repair_{self._settings.mode}"),
        )
        return Message(role="user", content=content)

    def rules(self, task: Task) -> str:
        """What the judge demands of every program for a task."""
        return self._templates.fill(
            "rules",
            library=_library(task),
            precision=_precision(task),
            variants=_variants(task),
        )

    def dialect(self, backend: str) -> str:
        """How kernels for a backend are written."""
        return self._templates.dialect(backend)

    def fits(self, messages: tuple[Message, ...]) -> bool:
        return tokens_of(messages) <= self._settings.max_prompt_tokens

    def _system(self, task: Task, backend: str, hardware: str) -> str:
        """The same over a run, so it is put together once."""
        # The task is kept beside its text, so that no other can get the same identity.
        key = (id(task), backend, hardware)
        if key not in self._stable:
            self._stable[key] = (task, self._fill_system(task, backend, hardware))
        return self._stable[key][1]

    def _fill_system(self, task: Task, backend: str, hardware: str) -> str:
        return self._templates.fill(
            "system",
            dialect=self.dialect(backend),
            rules=self.rules(task),
            library=_library(task),
            precision=_precision(task),
            variants=_variants(task),
            hardware=hardware or "Not described.",
            name=task.name,
            description=task.description or "See the reference.",
            reference=fenced(task.source),
            workloads="\n".join(
                f"- {load.name}: {json.dumps(load.params, default=str)}, weight {load.weight:g}"
                for load in task.workloads
            ),
        )

    def _step(self, request: Request, plan: _Plan) -> str:
        fill = self._templates.fill
        parts = [
            fill(
                "exemplar",
                number=number,
                verdict=headline(elite.evaluation),
                program=fenced(elite.candidate.source),
            )
            for number, elite in enumerate(_others(request)[: plan.exemplars], 1)
        ]
        if plan.contrast and request.contrast:
            shown = "\n\n".join(map(_with_verdict, request.contrast))
            parts.append(fill("contrast", programs=shown))
        if request.parent is not None:
            parts.append(self._parent(request.parent, plan))
        if plan.failures:
            parts.append(self._failures(request.failures[-plan.failures :]))
        if plan.lessons and request.lessons:
            lessons = "\n".join(f"- {_clip(lesson, _FAILURE_LENGTH)}" for lesson in request.lessons)
            parts.append(fill("lessons", lessons=lessons))
        parts += self._wanted(request)
        return "\n\n".join(parts)

    def _wanted(self, request: Request) -> Iterator[str]:
        """What is to be done now: answer a question, mend a program, carry out a plan, or go on."""
        fill, mode = self._templates.fill, self._settings.mode
        summary, plan = request.section(Summary), request.section(Plan)
        question, broken = request.section(Question), request.section(Broken)
        if summary is not None:
            yield fill("summary", summary=_clip(summary.text, _SUMMARY_LENGTH))
        if question is not None:
            yield fill("question", question=question.text)
            return
        if plan is not None:
            yield fill("plan", plan=_clip(plan.text, _PLAN_LENGTH))
        if broken is not None:
            elite = broken.program
            yield self.repair(elite.candidate.source, elite.evaluation).content
            return
        yield fill(f"request_{'first' if request.parent is None else mode}")

    def _parent(self, parent: Elite, plan: _Plan) -> str:
        evaluation = parent.evaluation
        said = told(evaluation, log=plan.log) if plan.details else headline(evaluation)
        return self._templates.fill(
            "parent",
            program=fenced(parent.candidate.source),
            evaluation=said,
            verdict=headline(evaluation),
        )

    def _failures(self, failures: Sequence[Failure]) -> str:
        return self._templates.fill("failures", failures="\n".join(map(_failure, failures)))


def tokens_of(messages: tuple[Message, ...]) -> int:
    return sum(estimate_tokens(message.content) for message in messages)


def told(evaluation: Evaluation, *, log: bool = True) -> str:
    """The judge's words, bounded. The verdict comes first, so the end is what is cut.

    They hold what the program itself has printed, so they are fenced like code.
    """
    shown = evaluation if log else evaluation.model_copy(update={"log": ""})
    return fenced(_clip(render(shown), _EVALUATION_LENGTH), "text")


def fenced(text: str, tag: str = "python") -> str:
    """A code block whose fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{tag}\n{text.rstrip()}\n{fence}"


def _plans(request: Request) -> Iterator[_Plan]:
    """From the whole story to the least that makes sense."""
    exemplars, failures = len(_others(request)), len(request.failures)
    yield from (_Plan(left, failures) for left in range(exemplars, -1, -1))
    yield from (_Plan(0, left) for left in range(failures - 1, -1, -1))
    if request.contrast:
        yield _Plan(0, 0, contrast=False)
    yield _Plan(0, 0, contrast=False, log=False)
    yield _Plan(0, 0, contrast=False, log=False, lessons=False)
    yield _Plan(0, 0, contrast=False, log=False, lessons=False, details=False)


def _others(request: Request) -> tuple[Elite, ...]:
    source = request.parent.candidate.source if request.parent is not None else None
    return tuple(elite for elite in request.exemplars if elite.candidate.source != source)


def _with_verdict(elite: Elite) -> str:
    return f"{headline(elite.evaluation)}\n\n{fenced(elite.candidate.source)}"


def _failure(failure: Failure) -> str:
    message = f" {' '.join(failure.message.split())}" if failure.message else ""
    said = f"{failure.stage.value}: {failure.reason.value}.{message}"
    return f"- {failure.summary or 'A change'}: {_clip(said, _FAILURE_LENGTH)}"


def _library(task: Task) -> str:
    if task.library_calls:
        return "PyTorch operators beside your kernels are allowed; their share of time is reported."
    return "PyTorch operators may allocate and reshape, nothing more: all work is in your kernels."


def _precision(task: Task) -> str:
    policy = _PRECISION[task.precision]
    if task.tolerance is None:
        return policy
    return f"{policy} Tolerance: rtol {task.tolerance.rtol:g}, atol {task.tolerance.atol:g}."


def _variants(task: Task) -> str:
    if not task.variants:
        return "others of the same distribution"
    return "variants of them (" + ", ".join(item.value for item in task.variants) + ")"


def _clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 4].rstrip() + " ..."
