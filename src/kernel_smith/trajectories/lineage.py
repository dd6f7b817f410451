"""A light index of one run: who descends from whom, and what the last measuring said.

It holds a few numbers per program. Programs and evaluations stay in the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kernel_smith.records import (
    Evaluation,
    Event,
    Remeasured,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
    score,
)
from kernel_smith.store import Ranking

_DIGEST = 16


def text_key(text: str) -> bytes:
    """Equal for texts that differ in blanks at line ends alone, as fenced code may."""
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return hashlib.blake2b(lines.encode(), digest_size=_DIGEST).digest()


@dataclass(slots=True)
class Program:
    """One program of a run."""

    parent: str | None
    first: int = 0
    """The number of the event with its first evaluation; 0: there is none."""
    measured: int = 0
    """The number of the event with its last evaluation; 0: there is none."""
    beside: dict[str, int] = field(default_factory=dict)
    """The numbers of the last events with evaluations beside other programs."""
    score: float = 0.0


@dataclass
class RunIndex:
    """Read from all events of a run: `RunIndex.of(store.events(run))`."""

    task: Task | None = None
    programs: dict[str, Program] = field(default_factory=dict)
    by_text: dict[bytes, str] = field(default_factory=dict)
    evaluated: set[int] = field(default_factory=set)
    """The steps that were evaluated."""
    _candidates: dict[int, str] = field(default_factory=dict)
    _ranking: Ranking = field(default_factory=Ranking)

    @classmethod
    def of(cls, events: Iterable[tuple[int, Event]]) -> RunIndex:
        index = cls()
        for sequence, event in events:
            index._add(sequence, event)
        return index

    def lineage(self, candidate: str) -> Iterator[str]:
        """From a program to the start, along the parent that was changed each time."""
        seen: set[str] = set()
        current: str | None = candidate
        while current in self.programs and current not in seen:
            seen.add(current)
            yield current
            current = self.programs[current].parent

    @property
    def best(self) -> str | None:
        return self._ranking.best

    def was_best(self, candidate: str) -> bool:
        """Whether a program took the lead and held it; one that had luck did not."""
        return candidate in self._ranking.held

    def is_measured(self, candidate: str) -> bool:
        return candidate in self.programs and self.programs[candidate].measured > 0

    def score_of(self, candidate: str | None) -> float:
        return self.programs[candidate].score if candidate in self.programs else 0.0

    def _add(self, sequence: int, event: Event) -> None:
        self._ranking.hear(event)
        if isinstance(event, RunStarted):
            self.task = event.task
        elif isinstance(event, StepProposed):
            self._proposed(event)
        elif isinstance(event, StepEvaluated):
            self._evaluated(sequence, event)
        elif isinstance(event, StepDropped):
            self._candidates.pop(event.step, None)
        elif isinstance(event, Remeasured):
            self._remeasured(sequence, event)

    def _proposed(self, event: StepProposed) -> None:
        proposal = event.proposal
        own = proposal.candidate.content_hash
        parent = proposal.parents[0] if proposal.parents else None
        self._candidates[event.step] = own
        self.programs.setdefault(own, Program(parent))
        self.by_text.setdefault(text_key(proposal.candidate.source), own)

    def _evaluated(self, sequence: int, event: StepEvaluated) -> None:
        own = self._candidates.get(event.step)
        if own is None:
            return
        self.evaluated.add(event.step)
        self._measure(own, sequence, event.evaluation)

    def _remeasured(self, sequence: int, event: Remeasured) -> None:
        if event.candidate not in self.programs or event.evaluation.stage is Stage.UNSTABLE:
            return
        self._measure(event.candidate, sequence, event.evaluation)

    def _measure(self, candidate: str, sequence: int, evaluation: Evaluation) -> None:
        program = self.programs[candidate]
        program.first = program.first or sequence
        program.measured, program.score = sequence, score(evaluation)
        beside = evaluation.beside
        if evaluation.ok and beside is not None and beside.gain is not None:
            program.beside[beside.candidate_hash] = sequence
