"""What somebody outside needs to propose the next program of a run: a person or a coding agent."""

from __future__ import annotations

import random

from pydantic import Field

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.proposers.model.config import Model, Settings, make_settings
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Event,
    Message,
    Question,
    Record,
    Remeasured,
    Request,
    RunConfig,
)
from kernel_smith.runs.requests import request_of
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.search.base import Ask, Exhausted, Strategy
from kernel_smith.search.context import context_of
from kernel_smith.store import OUTSIDE

# Prompts are made for whoever reads them; where a run asks no model, nobody is asked.
_NOBODY = Model(name="nobody", base_url="http://127.0.0.1/v1")


class NothingToImprove(BadInput):
    """A run in which no program was accepted yet."""


class Assignment(Record):
    """One request for a better program, with all that whoever answers it has to know."""

    run: str
    request: Request
    parent: str | None = Field(description="the hash to name when the answer is told")
    parent_step: int | None
    steps: dict[str, int] = Field(description="the steps of all programs in it, by their hashes")
    rules: str = Field(description="what the judge demands of every program")
    dialect: str = Field(description="how kernels for this backend are written")
    reference: str = Field(description="the task's source, which is slow and right")
    messages: tuple[Message, ...] = Field(description="exactly what a model would be sent")


class MeasuredAgain(Record):
    """A measuring that decided who leads."""

    step: int | None
    evaluation: Evaluation


class Told(Record):
    """What came of a program that somebody proposed."""

    step: int
    evaluation: Evaluation = Field(description="what it showed at first")
    measured_again: tuple[MeasuredAgain, ...] = Field(
        description="of itself, and of the best before it, where it took the lead"
    )
    best_step: int | None = Field(description="the step that leads now")

    @property
    def counts(self) -> Evaluation:
        """What is known of the program now."""
        later = [each.evaluation for each in self.measured_again if each.step == self.step]
        return later[-1] if later else self.evaluation


def assign(
    state: RunState, strategy: Strategy, *, best: bool = False, parent: str | None = None
) -> Assignment:
    """Return what the run's method asks for next, or a change of the best or of `parent`.

    `parent` is the number of a step, or a candidate's hash. Raises `NothingToImprove`
    where there is no program yet.
    """
    rng = random.Random()
    name = _best(state) if parent is None else find_candidate(state, parent)
    ask = None if best or parent is not None else _next_ask(strategy, state, rng)
    if ask is None:
        ask = Ask(worker=OUTSIDE, parent=name, context=context_of(state, name))
    return _assignment(state, request_of(state, ask, rng.getrandbits(32)), ask.parent)


def find_candidate(state: RunState, word: str) -> str:
    """Return the hash of the candidate that a step's number or the beginning of a hash names."""
    if word.isdecimal() and int(word) in state.steps:
        name = state.steps[int(word)].proposal.candidate.content_hash
        matching = [name] if name in state.evaluated else []
    else:
        matching = [name for name in state.evaluated if name.startswith(word)]
    if len(matching) != 1:
        raise BadInput(
            f"--parent {word}: {len(matching) or 'none'} of the run's candidates that were judged "
            "have this number, or begin so; expected one",
            hint=f"take a step's number or a hash from `kernel-smith runs show {state.run}`",
        )
    return matching[0]


def tell(
    run: Run, candidate: Candidate, engine: Evaluator, parent: str | None, summary: str
) -> Told:
    """Judge a program as the next step of a run. `parent` is as in `assign`."""
    again: list[Remeasured] = []

    def hear(event: Event, state: RunState) -> None:
        if isinstance(event, Remeasured):
            again.append(event)

    state = run.state
    origin = None if parent is None else find_candidate(state, parent)
    number = run.tell(candidate, engine, origin, summary, hear)
    at_first = state.steps[number].evaluation
    assert at_first is not None
    return Told(
        step=number,
        evaluation=at_first,
        measured_again=tuple(
            MeasuredAgain(step=step_of(state, event.candidate), evaluation=event.evaluation)
            for event in again
        ),
        best_step=None if state.best is None else step_of(state, state.best.candidate.content_hash),
    )


def step_of(state: RunState, candidate: str) -> int | None:
    """Return the number of the first step that proposed a candidate."""
    numbers = (
        step.number
        for step in state.steps.values()
        if step.proposal.candidate.content_hash == candidate
    )
    return next(numbers, None)


def _steps_in(state: RunState, request: Request) -> dict[str, int]:
    """Return the steps of the programs that are shown, and of what the parent was timed beside."""
    shown = [each.candidate.content_hash for each in request.exemplars]
    if request.parent is not None:
        beside = request.parent.evaluation.beside
        shown.append(request.parent.candidate.content_hash)
        shown += [beside.candidate_hash] if beside is not None else []
    found = {name: step_of(state, name) for name in shown}
    return {name: step for name, step in found.items() if step is not None}


def _best(state: RunState) -> str:
    if state.best is None:
        raise NothingToImprove(
            f"run {state.run} has no program to improve yet", hint="tell it a first one"
        )
    return state.best.candidate.content_hash


def _next_ask(strategy: Strategy, state: RunState, rng: random.Random) -> Ask | None:
    """Return what the run's method would ask for next; None if that is no change of a program."""
    try:
        asked = strategy.next(state, tuple(state.config.proposers), rng)
    except Exhausted:
        return None
    if asked is None or asked.parent is None:
        return None
    thinking = any(isinstance(part, Question) for part in asked.context)
    return None if thinking else asked


def _assignment(state: RunState, request: Request, parent: str | None) -> Assignment:
    prompts = Prompts(_settings(state.config))
    return Assignment(
        run=state.run,
        request=request,
        parent=parent,
        parent_step=None if parent is None else step_of(state, parent),
        steps=_steps_in(state, request),
        rules=prompts.rules(request.task),
        dialect=prompts.dialect(request.backend),
        reference=request.task.source,
        messages=prompts.build(request).messages,
    )


def _settings(config: RunConfig) -> Settings:
    """Return those of the run's models, or the usual ones where it has none."""
    stored = config.settings.get("model")
    return Settings(models=(_NOBODY,)) if stored is None else make_settings(stored)
