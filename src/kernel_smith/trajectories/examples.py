"""From a step to an example: what a model was asked, or could have been, and the answer.

A question is `rebuilt` from the templates with the parent and its evaluation alone, `brief` from
the short ones, or `recorded`: what the model of the run was told. Answers are SEARCH/REPLACE
blocks where the question asks for them, or whole programs. Every answer is read back with the
parser that reads models' answers, and must give the child.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from pydantic import Field

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.config import Model, Settings
from kernel_smith.proposers.model.edits import has_edits
from kernel_smith.proposers.model.parse import Program, parse_answer
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.proposers.model.sections import fenced
from kernel_smith.proposers.model.texts import BRIEF, Templates
from kernel_smith.records import (
    Elite,
    Example,
    Message,
    Record,
    Request,
    TrainingStep,
)
from kernel_smith.runs.hardware import describe_hardware
from kernel_smith.trajectories.diffs import edits_between, render_edits

Mode = Literal["edits", "full"]

_PROMPTS_KEPT = 4
_LONGEST_SUMMARY = 240
_FIRST_SUMMARY = "a first program that does what the reference does."
_LATER_SUMMARY = "the program, to make it faster."
# Questions are made for whichever model reads them later; nobody is asked.
_NOBODY = Model(name="nobody", base_url="http://127.0.0.1/v1")


class ExampleSettings(Record):
    """How a step becomes a question and an answer."""

    prompt: Literal["rebuilt", "recorded", "brief"] = Field(
        default="rebuilt", description="where a step has no conversation, recorded is rebuilt"
    )
    answer: Mode = Field(
        default="edits", description="what is asked for; where blocks cannot say it, in full"
    )
    max_prompt_tokens: int = Field(default=32000, ge=256, description="estimated")


def example_of(step: TrainingStep, settings: ExampleSettings) -> Example | None:
    """None: the question is too long, or no answer gives exactly this child."""
    recorded = _recorded(step) if settings.prompt == "recorded" else None
    if recorded is not None:
        mode: Mode = "edits" if has_edits(recorded[-1].content) else "full"
        answer = answer_of(step, mode)
        return _example(step, recorded, answer, mode) if answer is not None else None
    wanted: Mode = "full" if step.first else settings.answer
    for mode in dict.fromkeys((wanted, "full")):
        answer = answer_of(step, mode)
        if answer is not None:
            messages = _rebuilt(step, mode, settings)
            return _example(step, messages, answer, mode) if messages is not None else None
    return None


def answer_of(step: TrainingStep, mode: Mode) -> str | None:
    """What a model should say to make this step, if it can be said in this mode."""
    parent = step.parent.candidate.source if step.parent is not None else ""
    child = step.child.candidate.source
    if mode == "full":
        change = fenced(child)
    else:
        edits = edits_between(parent, child)
        if not edits:
            return None
        change = render_edits(edits)
    answer = f"Change: {_summary(step)}\n\n{change}"
    program = parse_answer(answer, parent)
    understood = isinstance(program, Program) and program.source.rstrip() == child.rstrip()
    return answer if understood else None


def _summary(step: TrainingStep) -> str:
    said = " ".join(step.summary.split())
    if not said:
        return _FIRST_SUMMARY if step.first else _LATER_SUMMARY
    return said if len(said) <= _LONGEST_SUMMARY else said[: _LONGEST_SUMMARY - 3] + "..."


def _example(step: TrainingStep, messages: tuple[Message, ...], answer: str, mode: Mode) -> Example:
    return Example(
        id=step.identity,
        kind="first" if step.first else "later",
        task=step.task,
        backend=step.child.candidate.backend,
        messages=messages,
        answer=answer,
        mode=mode,
        parent=step.parent.candidate.source if step.parent is not None else None,
        child=step.child.candidate.source,
        gain=step.gain.overall if step.gain is not None else None,
        proposer=step.proposer,
        run=step.run,
        step=step.step,
    )


def _recorded(step: TrainingStep) -> tuple[Message, ...] | None:
    """The beginning of the conversation: what was asked before anything was answered.

    The repair of a program may have been asked for without the question that led to it. Such a
    conversation does not begin with this parent.
    """
    if step.conversation is None:
        return None
    messages = step.conversation.messages[:2]
    if tuple(message.role for message in messages) != ("system", "user"):
        return None
    question = messages[-1].content
    if step.parent is None:
        return messages if "class ModelNew" not in question else None
    return messages if step.parent.candidate.source.rstrip() in question else None


def _rebuilt(
    step: TrainingStep, mode: Mode, settings: ExampleSettings
) -> tuple[Message, ...] | None:
    """Without other programs, failures and lessons: nothing of what came later can be in it."""
    templates = BRIEF if settings.prompt == "brief" else None
    prompts = _prompts(step.task.content_hash, mode, templates, settings.max_prompt_tokens)
    backend = step.child.candidate.backend
    _demand_dialect(templates, backend)
    parent = _as_before(step.parent, step.child) if step.parent is not None else None
    seen = parent.evaluation if parent is not None else step.child.evaluation
    request = Request(
        task=step.task, backend=backend, parent=parent, hardware=describe_hardware(seen)
    )
    try:
        return prompts.build(request).messages
    except BadInput:
        return None


def _as_before(parent: Elite, child: Elite) -> Elite:
    """Without what was learnt of the parent by timing it beside the child."""
    beside = parent.evaluation.beside
    if beside is None or beside.candidate_hash != child.candidate.content_hash:
        return parent
    evaluation = parent.evaluation.model_copy(update={"beside": None})
    return parent.model_copy(update={"evaluation": evaluation})


@lru_cache
def _demand_dialect(templates: str | None, backend: str) -> None:
    """A backend that no prompt knows is an error, and must not pass for a prompt too long."""
    Templates(templates).dialect(backend)


@lru_cache(maxsize=_PROMPTS_KEPT)
def _prompts(task: str, mode: Mode, templates: str | None, max_prompt_tokens: int) -> Prompts:
    """One for each task: they keep what they made of every task that they saw."""
    settings = Settings(
        models=(_NOBODY,), mode=mode, templates=templates, max_prompt_tokens=max_prompt_tokens
    )
    return Prompts(settings)
