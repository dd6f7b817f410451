"""Plan, code and debug roles over a tree of programs, as in STARK.

One model in three roles, each told what its role needs and nothing else. The planner sees the
program and what was tried from it, and says what to change and where. The coder sees the program
and the plan. The debugger sees the program, the attempt that failed and the judge's words about it.

The tree is searched by a rule that is mostly greedy: usually the best program is planned for, and
now and then a leaf that was not, drawn at random. First programs are left alone once they have had
enough children, and so is a program whose children have all been worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import (
    Broken,
    Declined,
    Event,
    Label,
    Noted,
    Plan,
    Question,
    RunConfig,
    StepDropped,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of
from kernel_smith.search.thinking import THINKER, ask_without_thinking

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_ROLE, _PLAN, _BROKEN, _DEPTH = "role", "plan", "broken", "depth"
_PLANNER, _CODER, _DEBUGGER = "planner", "coder", "debugger"
_EXPLORATION = 0.3
_MOST_DEBUGGING = 3
_DEAD = 4  # children, none of them better
_ROOT_CHILDREN = 6

_ASK_FOR_A_PLAN = """You plan, and somebody else writes. Decide on the one change of the program
above that promises the most. Name the lines or the function that it is about, say what is to stand
there, and which limit it moves. A few sentences are enough; leave the writing to the coder."""


@dataclass
class _Idea:
    """A plan that is to be written."""

    parent: str
    text: str


class Roles:
    """A `Strategy`."""

    def __init__(self, config: RunConfig) -> None:
        self._bandit = Bandit(config.proposers)
        self._children: dict[str, list[str]] = {}
        self._roots: set[str] = set()
        self._ideas: dict[int, _Idea] = {}
        self._broken: dict[str, tuple[str, int]] = {}
        """Programs that failed, the parents that they were made from, and how often mended."""
        self._asked: set[int | str] = set()
        self._made = 0

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        worker = self._bandit.choose(free)
        if worker is None:
            return None
        plain = ask_without_thinking(state, worker)
        if plain is not None:
            return plain
        broken = next((name for name in self._broken if name not in self._asked), None)
        if broken is not None:
            return self._debug(broken, state)
        idea = next((number for number in self._ideas if number not in self._asked), None)
        if idea is not None:
            return self._code(idea)
        return self._plan(self._select(state, rng), state)

    def _select(self, state: RunState, rng: Random) -> str:
        """Return the best program that is worth going on with, or any leaf."""
        working = [name for name in state.ranking.scores if state.ranking.score(name) > 0]
        alive = [name for name in working if not self._is_dead(name, state)] or working
        leaves = [name for name in alive if not self._children.get(name)]
        if leaves and rng.random() < _EXPLORATION:
            return rng.choice(leaves)
        assert state.best is not None
        return max(alive, key=state.ranking.score, default=state.best.candidate.content_hash)

    def _is_dead(self, name: str, state: RunState) -> bool:
        children = self._children.get(name, ())
        if name in self._roots and len(children) >= _ROOT_CHILDREN:
            return True
        own = state.ranking.score(name)
        return len(children) >= _DEAD and all(state.ranking.score(c) <= own for c in children)

    def _plan(self, parent: str, state: RunState) -> Ask:
        context = (*context_of(state, parent), Question(text=_ASK_FOR_A_PLAN))
        label: Label = {_ROLE: _PLANNER, "parent": parent}
        return Ask(worker=THINKER, parent=parent, context=context, label=label)

    def _code(self, number: int) -> Ask:
        self._asked.add(number)
        idea = self._ideas[number]
        label: Label = {_ROLE: _CODER, _PLAN: number}
        context = (Plan(text=idea.text),)
        return Ask(worker=THINKER, parent=idea.parent, context=context, label=label)

    def _debug(self, name: str, state: RunState) -> Ask:
        self._asked.add(name)
        parent, depth = self._broken[name]
        label: Label = {_ROLE: _DEBUGGER, _BROKEN: name, _DEPTH: depth + 1}
        context = (Broken(program=state.evaluated[name]),)
        return Ask(worker=THINKER, parent=parent, context=context, label=label)

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
        match event:
            case Noted() if event.label.get(_ROLE) == _PLANNER:
                self._made += 1
                self._ideas[self._made] = _Idea(str(event.label["parent"]), event.note.text)
            case StepProposed():
                self._answered(event.label)
            case StepDropped() | Declined():
                self._answered(event.label)
            case StepEvaluated():
                self._evaluated(event.step, state)

    def _answered(self, label: Label) -> None:
        number, name = label.get(_PLAN), label.get(_BROKEN)
        if isinstance(number, int):
            self._ideas.pop(number, None)
            self._asked.discard(number)
        if isinstance(name, str):
            self._broken.pop(name, None)
            self._asked.discard(name)

    def _evaluated(self, number: int, state: RunState) -> None:
        step = state.steps[number]
        name, parent = step.proposal.candidate.content_hash, step.parent
        if parent is None:
            self._roots.add(name)
            return
        self._children.setdefault(parent, []).append(name)
        depth = int(step.label.get(_DEPTH, 0))
        written = step.label.get(_ROLE) in (_CODER, _DEBUGGER)
        failed = step.evaluation is not None and not step.evaluation.ok
        if written and failed and depth < _MOST_DEBUGGING:
            self._broken[name] = (parent, depth)
