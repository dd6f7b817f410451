"""Selector, designer and writer, as in the GPU Kernel Scientist.

Three stages, one after the other, all of them asked of a model. The selector reads the population,
as a list of scores by workload, and names a base and a reference to compare it with. The designer
reads both, lists avenues and then plans, each with the gain that it predicts, from the least to the
most, and how new the idea is. Three plans are written: the newest, the one with the largest gain if
it succeeds, and the one with the largest gain in any case. Then the selector has its turn again.

Where an answer cannot be read, the best program is the base, or it is changed without a plan. Other
workers change the best meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import (
    Declined,
    Event,
    Exemplars,
    Label,
    Noted,
    Plan,
    Question,
    RunConfig,
    Section,
    StepDropped,
    StepProposed,
)
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of
from kernel_smith.search.front import workload_scores
from kernel_smith.search.thinking import THINKER, ask_without_thinking

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_ROLE = "role"
_SELECTOR, _DESIGNER, _WRITER = "selector", "designer", "writer"
_LISTED = 20
_ID = 8
_LONGEST_SUMMARY = 100

_SELECT = """You choose what the next experiments start from. These are the programs of this run,
each with its id, how many times as fast as the reference it is, over all and on each workload, and
what was changed:

{programs}

Choose a base to experiment on, and a reference that can teach something about it, such as one that
is better on some workload. Answer with two lines, `base: ID` and `reference: ID`, and then why."""

_DESIGN = """You design experiments on the program above. First list about ten avenues along which
it could become faster. Then describe five experiments, precisely enough to be written by somebody
else, each on a line of its own in this form, with gains in percent:

PLAN: what to change | gain LOW to HIGH | innovation 0 to 100"""

_PLAN = re.compile(
    r"^\W*PLAN\W*:\s*(?P<text>.+?)\s*\|\s*gain\s*(?P<low>-?[\d.]+)\s*%?\s*to\s*(?P<high>-?[\d.]+)"
    r"\s*%?\s*\|\s*innovation\s*(?P<new>[\d.]+)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Experiment:
    """A plan, and what is predicted of it."""

    text: str
    low: float
    high: float
    innovation: float


def experiments_in(text: str) -> list[Experiment]:
    """Return the plans of a designer's answer."""
    return [
        Experiment(found["text"], *(float(found[name].strip(".") or 0) for name in _NUMBERS))
        for found in _PLAN.finditer(text)
    ]


_NUMBERS = ("low", "high", "new")


def chosen_of(experiments: Sequence[Experiment]) -> list[Experiment]:
    """The newest, the one that may gain most, and the one that gains most in any case."""
    left, chosen = list(experiments), []
    for worth in ("innovation", "high", "low"):
        if left:
            best = max(left, key=lambda each: getattr(each, worth))
            chosen.append(best)
            left.remove(best)
    return chosen


class Scientist:
    """A `Strategy`."""

    def __init__(self, config: RunConfig) -> None:
        self._bandit = Bandit(config.proposers)
        self._base: str | None = None
        self._reference: str | None = None
        self._plans: dict[int, str] = {}
        self._asked: set[int] = set()
        self._made = 0
        self._is_thinking = False

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        waiting = [number for number in self._plans if number not in self._asked]
        if self._is_thinking or (self._plans and not waiting):  # one stage after the other
            free = [name for name in free if name != THINKER]
        worker = self._bandit.choose(free)
        if worker is None:
            return None
        plain = ask_without_thinking(state, worker)
        if plain is not None:
            return plain
        if waiting:
            return self._write(waiting[0], state)
        self._is_thinking = True
        return self._select(state) if self._base is None else self._design(state)

    def _select(self, state: RunState) -> Ask:
        best = state.best
        assert best is not None
        question = _SELECT.format(programs="\n".join(_listed(state)))
        return _thinking(best.candidate.content_hash, _SELECTOR, Question(text=question))

    def _design(self, state: RunState) -> Ask:
        assert self._base is not None
        context: list[Section] = list(context_of(state, self._base))
        if self._reference is not None and self._reference != self._base:
            context.append(Exemplars(programs=(state.evaluated[self._reference],)))
        return _thinking(self._base, _DESIGNER, *context, Question(text=_DESIGN))

    def _write(self, number: int, state: RunState) -> Ask:
        self._asked.add(number)
        base = self._base or (state.best.candidate.content_hash if state.best else None)
        context: list[Section] = list(context_of(state, base))
        if self._reference is not None and self._reference != base:
            context.append(Exemplars(programs=(state.evaluated[self._reference],)))
        if self._plans[number]:
            context.append(Plan(text=self._plans[number]))
        label: Label = {_ROLE: _WRITER, "plan": number}
        return Ask(worker=THINKER, parent=base, context=tuple(context), label=label)

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
        if isinstance(event, Noted | StepDropped | Declined):
            self._is_thinking &= event.label.get(_ROLE) not in (_SELECTOR, _DESIGNER)
        match event:
            case Noted() if event.label.get(_ROLE) == _SELECTOR:
                self._base, self._reference = _selected(event.note.text, state)
            case Noted() if event.label.get(_ROLE) == _DESIGNER:
                designed = chosen_of(experiments_in(event.note.text))
                for text in [each.text for each in designed] or [""]:
                    self._made += 1
                    self._plans[self._made] = text
            case StepProposed() | StepDropped() | Declined():
                self._written(event.label.get("plan"))

    def _written(self, number: object) -> None:
        """When all plans were written, something else may be the base."""
        if isinstance(number, int) and self._plans.pop(number, None) is not None:
            self._asked.discard(number)
            if not self._plans:
                self._base = self._reference = None


def _thinking(parent: str, role: str, *context: Section) -> Ask:
    return Ask(worker=THINKER, parent=parent, context=context, label={_ROLE: role})


def _listed(state: RunState) -> list[str]:
    ranked = sorted(state.ranking.scores, key=state.ranking.score, reverse=True)
    lines = []
    for name in [each for each in ranked if state.ranking.score(each) > 0][:_LISTED]:
        elite = state.evaluated[name]
        speeds = ", ".join(f"{load} {speed:.2f}" for load, speed in workload_scores(elite).items())
        summary = " ".join(state.made[name].proposal.summary.split())[:_LONGEST_SUMMARY]
        lines.append(f"- {name[:_ID]}: {elite.score:.2f}x ({speeds}); {summary}")
    return lines


def _selected(text: str, state: RunState) -> tuple[str | None, str | None]:
    """Return the base and the reference that are named; the best where the base is not to be
    found."""
    best = state.best.candidate.content_hash if state.best is not None else None
    return _named("base", text, state) or best, _named("reference", text, state)


def _named(role: str, text: str, state: RunState) -> str | None:
    found = re.search(rf"\b{role}\W+([0-9a-f]{{{_ID}}})", text, re.IGNORECASE)
    if found is None:
        return None
    known = (name for name in state.ranking.scores if name.startswith(found[1].lower()))
    return next((name for name in known if state.ranking.score(name) > 0), None)
