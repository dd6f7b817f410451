"""The tuner: a proposer that changes nothing but numbers.

Candidates that differ in their numbers alone share one search, whoever wrote them. The search
starts from what its parents scored and learns from every proposal. `details` of a proposal carries
the structure, the values, the domains and what a sweep showed, so replaying `learn` rebuilds what
was known. (A sweep of which nothing was proposed is repeated.)
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_smith.errors import InternalError, UserError
from kernel_smith.programs.branches import macros_of
from kernel_smith.proposers.base import NothingToPropose, TryOut, parent_of
from kernel_smith.proposers.tuner.apply import apply
from kernel_smith.proposers.tuner.find import find, structure
from kernel_smith.proposers.tuner.fits import Fitting
from kernel_smith.proposers.tuner.search import Domains, Search
from kernel_smith.proposers.tuner.space import Space, Value, Values
from kernel_smith.proposers.tuner.sweeping import Findings, choose
from kernel_smith.records import (
    Elite,
    Evaluation,
    Proposal,
    Request,
    Stage,
    Sweep,
    content_hash,
    score,
)

_PATIENCE = 24
_ALL_TRIED = "all numbers that fit were tried"


@dataclass(frozen=True)
class _Asked:
    """What is to be tuned: a program, as values of a structure."""

    request: Request
    elite: Elite
    key: str
    space: Space
    values: Values
    search: Search


class Tuner:
    """A `Writer`. Gives a structure up after `patience` results without a gain.

    `try_out` has values of the program that leads swept before any are proposed; those of others,
    and all without it, are judged one by one.
    """

    name = "tuner"

    def __init__(
        self, seed: int = 0, patience: int = _PATIENCE, try_out: TryOut | None = None
    ) -> None:
        self._seed = seed
        self._patience = patience
        self._try_out = try_out
        self._lock = threading.Lock()
        # Held while a structure is swept, so that whoever asks meanwhile gets the second best.
        self._sweeping: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._unswept: set[str] = set()  # structures that cannot be swept
        self._lead = 0.0  # the highest score: a sweep takes its time, and is for whoever leads
        self._searches: dict[str, Search] = {}
        # The first source of a structure: the others are this one with other values.
        self._roots: dict[str, Space] = {}
        # Two numbers that happen to become equal may look like one, so what a proposal is made of
        # is remembered, and not searched for again.
        self._origins: dict[str, tuple[str, Values]] = {}

    def propose(self, request: Request) -> Proposal:
        elite = parent_of(request)
        with self._lock:
            key, space, values = self._locate(request, elite)
            search = self._searches[key]
            search.know(values, score(elite.evaluation), most=_most(elite.evaluation))
            asked = _Asked(request, elite, key, space, values, search)
            self._lead = max(self._lead, elite.score)
        if self._try_out is None or key in self._unswept:
            return self._suggest(asked)
        with self._sweeping[key]:
            return self._propose_swept(asked, self._try_out)

    def _suggest(self, asked: _Asked, sweep: Sweep | None = None) -> Proposal:
        """Propose the values that the search would try next. `sweep`: one that timed nothing."""
        with self._lock:
            accepts = self._acceptable(asked)
            chosen = asked.search.suggest(self._draw(asked.request), accepts)
            if chosen is None:
                raise NothingToPropose(_ALL_TRIED)
            if sweep is None:
                return self._proposal(asked, chosen)
            why = sweep.problem or "no variant was timed"
            return self._proposal(asked, chosen, {"not_swept": why}, sweep)

    def _acceptable(self, asked: _Asked) -> Callable[[Values], bool]:
        """Return what fits, unless the structure was given up."""
        if asked.search.without_gain >= self._patience:
            raise NothingToPropose("other numbers have not helped for long")
        fitting = Fitting(asked.space, asked.request.task)
        return lambda values: not fitting.problem(values)

    def _propose_swept(self, asked: _Asked, try_out: TryOut) -> Proposal:
        """Propose what the last sweep has left, or the best of another one."""
        search, space = asked.search, asked.space
        with self._lock:
            if (promised := search.next_promising()) is not None:
                return self._proposal(asked, promised)
        if not 0 < self._lead <= asked.elite.score:
            return self._suggest(asked)
        with self._lock:
            accepts = self._acceptable(asked)
            batch = choose(search, self._draw(asked.request), accepts, len(space.source))
        if not batch:
            raise NothingToPropose(_ALL_TRIED)
        variants = [apply(space, values) for values in batch]
        try:
            sweep = try_out(asked.request.task, asked.elite.candidate, variants)
        except (UserError, InternalError) as error:
            sweep = Sweep(problem=str(error))
        with self._lock:
            findings = Findings.of(batch, sweep, asked.elite.score, search.best_score)
            findings.tell(search)
            if not sweep.timed:  # it would not get better: each is judged for itself
                self._unswept.add(asked.key)
            elif (chosen := search.next_promising()) is not None:
                return self._proposal(asked, chosen, {"sweep": findings.written()}, sweep)
        if not sweep.timed:
            return self._suggest(asked, sweep)
        raise NothingToPropose(
            f"swept {len(batch)} configurations, and none is faster", device_seconds=sweep.seconds
        )

    def _proposal(
        self,
        asked: _Asked,
        chosen: Values,
        more: dict[str, Any] | None = None,
        sweep: Sweep | None = None,
    ) -> Proposal:
        parent = asked.elite.candidate
        candidate = parent.model_copy(update={"source": apply(asked.space, chosen)})
        self._origins[candidate.content_hash] = asked.key, chosen
        domains = _written(asked.search.domains)
        summary = _summary(asked.values, chosen)
        if sweep is not None and sweep.timed:
            summary += f" (swept {len(sweep.swept)} configurations)"
        return Proposal(
            candidate=candidate,
            proposer=self.name,
            parents=(parent.content_hash,),
            summary=summary,
            details={"structure": asked.key, "values": chosen, "domains": domains} | (more or {}),
            device_seconds=0.0 if sweep is None else sweep.seconds,
        )

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        details = proposal.details
        values: Values = dict(details["values"])
        with self._lock:
            search = self._search(details["structure"], _domains(details["domains"]))
            if "sweep" in details:
                Findings.read(details["sweep"]).tell(search)
            wrong = evaluation.stage is Stage.INCORRECT
            known = _known_score(evaluation)
            self._lead = max(self._lead, known or 0.0)
            search.know(values, known, most=_most(evaluation), wrong=wrong)
            self._origins[proposal.candidate.content_hash] = details["structure"], values

    def _locate(self, request: Request, elite: Elite) -> tuple[str, Space, Values]:
        """Return the structure of the parent, the source to write values into, the parent's
        values."""
        parent = elite.candidate
        if parent.content_hash in self._origins:
            key, values = self._origins[parent.content_hash]
            if key in self._roots:
                return key, self._roots[key], values
        space = find(parent.source, macros_of(elite.evaluation, parent.source))
        if not space.tunables:
            raise NothingToPropose("no numbers to tune in this program")
        key = content_hash(request.task.content_hash, parent.backend, structure(space))
        search = self._search(key, {t.name: t.domain for t in space.tunables})
        if key not in self._roots:
            self._roots[key] = space
            for alternative in space.alternatives:
                search.widen({name: (value,) for name, value in alternative.items()})
                search.enqueue(space.current | alternative)
            search.enqueue_neighbours(space.current, self._draw(request))
        return key, self._roots[key], space.current

    def _search(self, key: str, domains: Domains) -> Search:
        if key not in self._searches:
            self._searches[key] = Search(domains)
        self._searches[key].widen(domains)
        return self._searches[key]

    def _draw(self, request: Request) -> int:
        return int(content_hash(str(self._seed), str(request.seed))[:8], 16)


def _known_score(evaluation: Evaluation) -> float | None:
    """Failures score zero. Of what was not measured well nothing is known."""
    unmeasured = evaluation.stage is Stage.UNSTABLE or evaluation.untimed
    return None if unmeasured else score(evaluation)


def _most(evaluation: Evaluation) -> float | None:
    return evaluation.timing.speedup.high if evaluation.ok and evaluation.timing else None


def _written(domains: Domains) -> dict[str, list[Value]]:
    """As it comes back from JSON."""
    return {name: list(values) for name, values in domains.items()}


def _domains(written: dict[str, list[Value]]) -> Domains:
    return {name: tuple(values) for name, values in written.items()}


def _summary(before: Values, after: Values) -> str:
    changed = [
        f"{name} {before[name]} -> {after[name]}" for name in after if after[name] != before[name]
    ]
    return ", ".join(changed)
