"""Tree search by UCT, as KernelEvolve does it: one operator, a selection policy, a fitness.

Every program is a node below the one that it was made from; first programs are below the root. To
choose what is changed next, the tree is walked from the root: at each node either a new child is
asked for, if it has few for how often it was visited (progressive widening), or the walk goes on to
the child with the largest sum of value and uncertainty. A node's value is that of the best program
that came of it: the logarithm of its score, from 0 for the worst that was timed to 1 for the best.
A mean would be right for games, where the other side answers; here whoever asks keeps the best.
There is one operator: whoever is asked gets the parent with the best programs of its lineage, its
failures and the run's lessons, and may draft, debug or improve.

Kernels are deterministic where games are not, so a node is not played out: its own evaluation is
its first visit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from kernel_smith.records import (
    Declined,
    Elite,
    Event,
    Remeasured,
    RunConfig,
    StepDropped,
    StepEvaluated,
    StepProposed,
)
from kernel_smith.search.bandit import Bandit
from kernel_smith.search.base import Ask
from kernel_smith.search.context import context_of

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState

_CURIOSITY = 0.3
_WIDENING = 0.5  # a node has about the root of its visits as children
_ROOT = ""
_SHOWN = 3


@dataclass
class _Node:
    """What came of a program, and of all that was made from it."""

    parent: str | None
    score: float = 0.0
    children: list[str] = field(default_factory=list)
    visits: int = 0
    """Answers here and below, those that failed or are still being judged included."""
    waiting: int = 0
    """Asks here and below that were not answered yet: who is under way is not sent after."""
    best: float = 0.0
    """The highest score here and below."""


class Uct:
    """A `Strategy`."""

    def __init__(self, config: RunConfig) -> None:
        self._bandit = Bandit(config.proposers)
        self._nodes = {_ROOT: _Node(parent=None)}
        self._lowest, self._highest = math.inf, -math.inf

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask | None:
        worker = self._bandit.choose(free)
        if worker is None:
            return None
        chosen = self._select()
        for node in self._up_from(chosen):
            node.waiting += 1
        if chosen == _ROOT:
            return Ask(worker=worker, context=context_of(state, None))
        lineage = [name for name in self._names_up_from(chosen) if name not in (chosen, _ROOT)]
        shown = sorted(lineage, key=lambda name: -self._nodes[name].score)[:_SHOWN]
        exemplars = tuple(state.evaluated[name] for name in shown)
        return Ask(worker=worker, parent=chosen, context=context_of(state, chosen, exemplars))

    def hear(self, event: Event, state: RunState) -> None:
        self._bandit.hear(event, state)
        match event:
            case StepProposed():
                step = state.steps[event.step]
                self._answered(step.parent)
                self._grow(step.proposal.candidate.content_hash, step.parent)
            case StepDropped():
                self._answered(event.parent)
                self._visit(event.parent)
            case Declined():
                self._answered(event.parent)
                self._visit(event.parent)
            case StepEvaluated():
                step = state.steps[event.step]
                self._score(step.proposal.candidate.content_hash, state)
            case Remeasured():
                self._score(event.candidate, state)

    def _select(self) -> str:
        """Walk down to the node that is to have another child."""
        name = _ROOT
        while True:
            node = self._nodes[name]
            open_to = [child for child in node.children if self._nodes[child].score > 0]
            width = (node.visits + node.waiting) ** _WIDENING
            # Below the root are first programs: once one works, no more of them are asked for.
            if not open_to or (name != _ROOT and len(node.children) + node.waiting < width):
                return name
            name = max(open_to, key=lambda child: self._promise(child, node))

    def _promise(self, name: str, parent: _Node) -> float:
        node = self._nodes[name]
        tried = node.visits + node.waiting
        doubt = math.sqrt(math.log(parent.visits + parent.waiting + 1) / (tried + 1))
        return self._value(node) + _CURIOSITY * doubt

    def _value(self, node: _Node) -> float:
        span = self._highest - self._lowest
        return (math.log(node.best) - self._lowest) / span if span > 0 else 0.0

    def _grow(self, name: str, parent: str | None) -> None:
        if name in self._nodes:
            return
        above = parent if parent in self._nodes else _ROOT
        self._nodes[name] = _Node(parent=above)
        self._nodes[above].children.append(name)
        self._visit(name)

    def _visit(self, name: str | None) -> None:
        for node in self._up_from(name):
            node.visits += 1

    def _answered(self, parent: str | None) -> None:
        for node in self._up_from(parent):
            node.waiting = max(0, node.waiting - 1)

    def _score(self, name: str, state: RunState) -> None:
        """Put what is known of a program now in the place of what was."""
        node, score = self._nodes[name], _fitness(state.evaluated[name], state)
        node.score = score
        for above in self._up_from(name):
            below = (self._nodes[child].best for child in above.children)
            above.best = max(above.score, *below) if above.children else above.score
        if score > 0:
            logarithm = math.log(score)
            self._lowest = min(self._lowest, logarithm)
            self._highest = max(self._highest, logarithm)

    def _up_from(self, name: str | None) -> Iterator[_Node]:
        return (self._nodes[each] for each in self._names_up_from(name))

    def _names_up_from(self, name: str | None) -> Iterator[str]:
        """From a node to the root; the root alone for what has no parent here."""
        at: str | None = name if name in self._nodes else _ROOT
        while at is not None:
            yield at
            at = self._nodes[at].parent


def _fitness(elite: Elite, state: RunState) -> float:
    """Where nothing is timed, all that are correct are worth the same."""
    if state.config.untimed and elite.evaluation.ok and elite.evaluation.untimed:
        return 1.0
    return elite.score
