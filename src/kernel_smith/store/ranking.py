"""Who leads a run: one rule for the loop, for `runs` and for data sets.

The leader is the program with the highest certain speedup by its last measuring; of equals the one
that was evaluated first. A program that compiles to the same as an earlier one is no other program,
so it cannot lead. A measuring that was too noisy changes nothing. Once a run has ended, its best is
the one that it ended with, until somebody goes on with it.

Who takes the lead from another is a challenger until it was measured again. One that leads then has
held its lead, and counts as a new best; one that does not had luck.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from kernel_smith.records import (
    Evaluation,
    Event,
    Remeasured,
    RunEnded,
    RunResumed,
    Stage,
    StepEvaluated,
    StepProposed,
    score,
)


@dataclass
class Ranking:
    """A fold over the events of a run; programs go by their content hashes."""

    scores: dict[str, float] = field(default_factory=dict)
    """In the order in which programs were first evaluated; twins are not among them."""
    challenges: dict[str, str] = field(default_factory=dict)
    """Challengers that were not measured again yet, and whom they took the lead from."""
    held: dict[str, None] = field(default_factory=dict)
    """All that were the best and no challengers any more, in their order."""
    _leader: str | None = None
    _ended_with: str | None = None
    _by_binary: dict[str, str] = field(default_factory=dict)

    @property
    def best(self) -> str | None:
        return self._ended_with or self._leader

    def score(self, candidate: str | None) -> float:
        """Return the speedup that is certain; zero where there is none."""
        return self.scores.get(candidate, 0.0) if candidate is not None else 0.0

    def highest(
        self, among: Collection[str] | None = None, but: Collection[str] = ()
    ) -> str | None:
        """Return the program that leads these, or all but those."""
        chosen = [name for name in self.scores if name not in but]
        if among is not None:
            chosen = [name for name in chosen if name in among]
        best = max(chosen, key=self.score, default=None)
        return best if self.score(best) > 0 else None

    def is_twin(self, evaluation: Evaluation) -> bool:
        """Did another program that was heard of earlier compile to the same?"""
        own = evaluation.candidate_hash
        return evaluation.binary is not None and self._by_binary.get(evaluation.binary, own) != own

    def hear(self, event: Event) -> None:
        """Take one event in."""
        match event:
            case StepEvaluated():
                self._evaluated(event.evaluation)
            case Remeasured():
                self._remeasured(event.candidate, event.evaluation)
            case RunEnded():
                self._ended_with = event.best
            case RunResumed() | StepProposed():
                self._ended_with = None

    def _evaluated(self, evaluation: Evaluation) -> None:
        if not evaluation.ok or self.is_twin(evaluation):
            return
        own = evaluation.candidate_hash
        if evaluation.binary is not None:
            self._by_binary.setdefault(evaluation.binary, own)
        self.scores[own] = score(evaluation)
        if self.score(own) > self.score(self._leader):
            if self._leader is not None:
                self.challenges[own] = self._leader
            self._leader = own
            self._note_leader()

    def _remeasured(self, candidate: str, evaluation: Evaluation) -> None:
        challenged = self.challenges.pop(candidate, None) is not None
        if candidate in self.scores and evaluation.stage is not Stage.UNSTABLE:
            self.scores[candidate] = score(evaluation)
            self._leader = self.highest()
        elif challenged and candidate == self._leader:
            return  # it leads, and nobody can say by what right
        self._note_leader()

    def _note_leader(self) -> None:
        if self._leader is not None and self._leader not in self.challenges:
            self.held[self._leader] = None
