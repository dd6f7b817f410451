"""What a model is told: first all that stays the same over a run, then the step at hand.

Servers keep the beginning of a prompt that they have seen, so what is stable comes first. A prompt
that is too long loses the least important sections (`sections.py`). No endpoint is needed to make
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.errors import BadInput
from kernel_smith.knowledge import sections_for
from kernel_smith.programs.fold import Folded
from kernel_smith.proposers.model.config import Settings
from kernel_smith.proposers.model.ledger import CHARACTERS_PER_TOKEN, estimate_tokens
from kernel_smith.proposers.model.sections import (
    Form,
    StepText,
    clip,
    extents,
    fenced,
    focused,
    others_of,
)
from kernel_smith.proposers.model.texts import Templates
from kernel_smith.records import (
    Elite,
    Evaluation,
    Message,
    Precision,
    Request,
    Task,
)

_LEAST_SHOWN = 400
_LONG_LINES = 300

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
    parent: Folded  # as they show it; empty for a first program
    exemplars: tuple[Elite, ...]  # those that it shows


class Prompts:
    """Makes the messages of a request, within the settings' bound."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._templates = Templates(settings.templates)
        self._step = StepText(self._templates)
        self._stable: dict[tuple[int, str, str, str], tuple[Task, str]] = {}

    def build(self, request: Request) -> Prompt:
        """Return the messages to begin with. Raises `BadInput` if task and parent alone are too
        long."""
        stable = self._system(request)
        system = Message(role="system", content=stable)
        size = 0
        shown = self.shown(request)
        form = self._form_for(shown)
        for extent in extents(request):
            user = Message(role="user", content=self._step.render(request, extent, form, shown))
            messages = (system, user)
            size = tokens_of(messages)
            if size <= self._settings.max_prompt_tokens:
                return Prompt(messages, shown, others_of(request)[: extent.exemplars])
        raise BadInput(
            f"the task and the program alone take about {size} tokens, and max_prompt_tokens is "
            f"{self._settings.max_prompt_tokens}",
            hint=f"set max_prompt_tokens to {size} or more",
        )

    def retry(self, messages: tuple[Message, ...], answer: str, reason: str) -> tuple[Message, ...]:
        """Return the conversation with the request to answer again; a long answer is cut to fit."""
        request = Message(role="user", content=self._templates.fill("retry", reason=reason))
        room = self._settings.max_prompt_tokens - tokens_of((*messages, request))
        shown = clip(answer, max(_LEAST_SHOWN, int(room * CHARACTERS_PER_TOKEN)))
        said = Message(role="assistant", content=shown or "(nothing)")
        return (*messages, said, request)

    def repair(self, program: Folded, evaluation: Evaluation) -> Message:
        """Return the request to mend. `program` may be empty if the conversation shows it."""
        form = self._form_for(program)
        return Message(role="user", content=self._step.repair(program, evaluation, form))

    def shown(self, request: Request) -> Folded:
        """Return the program to change, as the prompt shows it: where one workload is to become
        faster, without what others need. Nothing is folded where the whole program is to be
        written."""
        if request.parent is None:
            return Folded("")
        return self.folded(request.parent.candidate.source, request)

    def folded(self, source: str, request: Request, workload: str | None = None) -> Folded:
        """Return a program that is to be changed for the request's focus, or for this workload."""
        if self._settings.mode == "full":
            return Folded(source)
        return focused(source, request, workload)

    def _form_for(self, shown: Folded) -> Form:
        """Of a long program few lines change, and to write all of them anew invites mistakes."""
        if self._settings.mode == "auto":
            return "edits" if shown.hidden or shown.text.count("\n") > _LONG_LINES else "full"
        return self._settings.mode

    def rules(self, task: Task) -> str:
        """Return what the judge demands of every program for a task."""
        return self._templates.fill(
            "rules",
            library=_library(task),
            precision=_precision(task),
            variants=_variants(task),
        )

    def dialect(self, backend: str) -> str:
        """Tell how kernels for a backend are written."""
        return self._templates.dialect(backend)

    def fits(self, messages: tuple[Message, ...]) -> bool:
        return tokens_of(messages) <= self._settings.max_prompt_tokens

    def _system(self, request: Request) -> str:
        """The same over a run, so it is put together once."""
        # The task is kept beside its text, so that no other can get the same identity.
        task = request.task
        key = (id(task), request.backend, request.hardware, request.target)
        if key not in self._stable:
            self._stable[key] = (task, self._fill_system(*key[1:], task=task))
        return self._stable[key][1]

    def _sheet(self, task: Task, backend: str, hardware: str) -> Iterator[str]:
        """Yield the machine, and what is known about such kernels on it."""
        yield hardware or "Not described."
        sections = sections_for(task, backend, hardware) if self._settings.guides else ()
        if sections:
            known = "\n\n".join(section.markdown for section in sections)
            yield self._templates.fill("guides", guides=known)

    def _fill_system(self, backend: str, hardware: str, target: str, *, task: Task) -> str:
        return self._templates.fill(
            "system",
            dialect=self.dialect(backend),
            rules=self.rules(task),
            library=_library(task),
            precision=_precision(task),
            variants=_variants(task),
            hardware="\n\n".join(self._sheet(task, backend, hardware)),
            target=target or "Not known yet.",
            name=task.name,
            description=task.description or "See the reference.",
            reference=fenced(task.source),
            workloads="\n".join(
                f"- {load.name}: {json.dumps(load.params, default=str)}, weight {load.weight:g}"
                for load in task.workloads
            ),
        )


def tokens_of(messages: tuple[Message, ...]) -> int:
    return sum(estimate_tokens(message.content) for message in messages)


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
