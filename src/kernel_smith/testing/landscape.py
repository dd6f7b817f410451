"""A made-up landscape of kernels: known optimum, plateaus and traps, nothing compiled or timed.

A program is a few choices, each out of some levels, like a tile size or whether a loop is unrolled.
What makes it a landscape that is worth searching:

- most choices pay by themselves, and their best level differs from landscape to landscape;
- some pay only together (a trap: each alone costs a little), which greedy steps do not find;
- some change nothing at all (a plateau), and some combinations do not compile.

`Landscape(seed)` judges; `Explorer` is a worker that knows as much as a model would be told: it
writes a first program at random, changes one or two choices of a parent, and, where it is shown
other programs, takes over choices of theirs.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from concurrent.futures import Future

from kernel_smith.records import (
    Candidate,
    Elite,
    Evaluation,
    Note,
    Plan,
    Proposal,
    Question,
    Reason,
    Request,
    content_hash,
)

CHOICES = 10
EDITS = {f"choice-{number}": "Choose another level of it." for number in range(CHOICES)}
"""What a method may plan with."""
LEVELS = 5
_PLATEAUS = 2
_TRAPS = 2
_TOGETHER, _ALONE = 0.4, 0.05  # what a trap holds, and what each step into it costs
_BROKEN = 0.08
_FIRST_TRIES = 0.3
_TAKES_OVER = 0.5

_PROGRAM = "class ModelNew:\n    def forward(self): ...\n    choices = [{choices}]\n"
Choices = tuple[int, ...]


def program(choices: Choices) -> Candidate:
    """Levels are names: programs that differ in numbers alone count as nearly the same."""
    named = ", ".join(f"choice_{number}_{level}" for number, level in enumerate(choices))
    return Candidate(source=_PROGRAM.format(choices=named), name="choices.py")


def choices_of(candidate: Candidate) -> Choices:
    return tuple(int(level) for level in re.findall(r"choice_\d+_(\d+)", candidate.source))


class Landscape:
    """Judges programs: `landscape(candidate)` is a speedup, or why there is none."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        order = rng.sample(range(CHOICES), CHOICES)
        self._seed = seed
        self._pairs = {
            (order[2 * number], order[2 * number + 1]): (
                rng.randrange(1, LEVELS),
                rng.randrange(1, LEVELS),
            )
            for number in range(_TRAPS)
        }
        self._idle = order[CHOICES - _PLATEAUS :]
        paying = order[2 * _TRAPS : CHOICES - _PLATEAUS]
        self._ladders = {choice: self._ladder(rng) for choice in paying}

    @staticmethod
    def _ladder(rng: random.Random) -> list[float]:
        """The logarithm of what each level of a choice brings; the first one brings nothing."""
        return [0.0, *(rng.uniform(-0.1, 0.25) for _ in range(LEVELS - 1))]

    def __call__(self, candidate: Candidate) -> float | Reason:
        choices = choices_of(candidate)
        if self._is_broken(choices):
            return Reason.COMPILER_REJECTED
        return self.speed(choices)

    def speed(self, choices: Choices) -> float:
        """Whether it compiles or not."""
        total = sum(ladder[choices[choice]] for choice, ladder in self._ladders.items())
        for pair, keys in self._pairs.items():
            levels = [choices[choice] for choice in pair]
            touched = sum(level > 0 for level in levels)
            total += _TOGETHER if levels == list(keys) else -_ALONE * touched
        return math.exp(total)

    @property
    def optimum(self) -> float:
        """The speed of the best program: one that is on a plateau, some of which compile."""
        best = {choice: ladder.index(max(ladder)) for choice, ladder in self._ladders.items()}
        for pair, keys in self._pairs.items():
            best |= dict(zip(pair, keys, strict=True))
        for levels in itertools.product(range(LEVELS), repeat=_PLATEAUS):
            best |= dict(zip(self._idle, levels, strict=True))
            found = tuple(best[choice] for choice in range(CHOICES))
            if not self._is_broken(found):
                return self.speed(found)
        raise ValueError(f"no best program of landscape {self._seed} compiles")

    def _is_broken(self, choices: Choices) -> bool:
        """By chance, but the same each time; the plainest program always works."""
        drawn = int(content_hash(str(self._seed), str(choices))[:8], 16) / 2**32
        return any(choices) and drawn < _BROKEN


class Explorer:
    """A `Worker` named `model`, which answers at once."""

    name = "model"
    begins = True

    def start(self, request: Request) -> Future[Proposal | Note]:
        answer: Future[Proposal | Note] = Future()
        thinking = request.section(Question) is not None
        answer.set_result(self.think(request) if thinking else self.propose(request))
        return answer

    def think(self, request: Request) -> Note:
        """Plans at random, in words that it understands itself."""
        rng = random.Random(request.seed)
        plans = [
            f"PLAN: choice {rng.randrange(CHOICES)} to level {rng.randrange(LEVELS)} "
            f"| gain 0 to {rng.randrange(30)} | innovation {rng.randrange(100)}"
            for _ in range(5)
        ]
        return Note(text="\n".join(plans))

    def propose(self, request: Request) -> Proposal:
        rng = random.Random(request.seed)
        if request.parent is None:
            tried = (rng.random() < _FIRST_TRIES for _ in range(CHOICES))
            drawn = tuple(rng.randrange(LEVELS) if some else 0 for some in tried)
            return Proposal(candidate=program(drawn), proposer=self.name, summary="a first program")
        parent = request.parent.candidate
        choices = list(choices_of(parent))
        shown = [*request.exemplars, *request.contrast]
        if shown and rng.random() < _TAKES_OVER:
            self._take_over(choices, rng.choice(shown), rng)
        planned = self._planned(request.section(Plan), rng)
        few = rng.sample(range(CHOICES), rng.choice((1, 1, 2)))
        for choice, level in planned or [(each, rng.randrange(LEVELS)) for each in few]:
            choices[choice] = level
        return Proposal(
            candidate=program(tuple(choices)),
            proposer=self.name,
            parents=(parent.content_hash,),
            summary="other choices",
        )

    @staticmethod
    def _planned(plan: Plan | None, rng: random.Random) -> list[tuple[int, int]]:
        """The choice that somebody else has made, and the level, if they have."""
        found = re.search(r"choice[ -](\d+)(?: to level (\d+))?", plan.text) if plan else None
        if found is None:
            return []
        return [(int(found[1]), int(found[2]) if found[2] else rng.randrange(LEVELS))]

    @staticmethod
    def _take_over(choices: list[int], shown: Elite, rng: random.Random) -> None:
        theirs = choices_of(shown.candidate)
        differing = [n for n in range(CHOICES) if theirs[n] != choices[n]]
        for choice in rng.sample(differing, min(2, len(differing))):
            choices[choice] = theirs[choice]

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Knows what it is told with each request, and nothing else."""

    def close(self) -> None:
        """Nothing is under way."""
