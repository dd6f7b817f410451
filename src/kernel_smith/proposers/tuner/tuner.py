"""The tuner: a proposer that changes nothing but numbers.

Candidates that differ in their numbers alone share one search, whoever wrote them. The search
starts from what its parents scored and learns from every proposal. `details` of a proposal carries
the structure, the values and the domains, so replaying `learn` rebuilds what was known.
"""

from __future__ import annotations

import threading

from kernel_smith.proposers.base import NothingToPropose, parent_of
from kernel_smith.proposers.tuner.apply import apply
from kernel_smith.proposers.tuner.find import find, structure
from kernel_smith.proposers.tuner.fits import Fitting
from kernel_smith.proposers.tuner.search import Domains, Search
from kernel_smith.proposers.tuner.space import Space, Value, Values
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Proposal,
    Request,
    Stage,
    content_hash,
    score,
)

_PATIENCE = 24


class Tuner:
    """A `Writer`. Gives a structure up after `patience` results without a gain."""

    name = "tuner"

    def __init__(self, seed: int = 0, patience: int = _PATIENCE) -> None:
        self._seed = seed
        self._patience = patience
        self._lock = threading.Lock()
        self._searches: dict[str, Search] = {}
        # The first source of a structure: the others are this one with other values.
        self._roots: dict[str, Space] = {}
        # Two numbers that happen to become equal may look like one, so what a proposal is made of
        # is remembered, and not searched for again.
        self._origins: dict[str, tuple[str, Values]] = {}

    def propose(self, request: Request) -> Proposal:
        elite = parent_of(request)
        parent, known = elite.candidate, elite.evaluation
        with self._lock:
            key, space, values = self._locate(request, parent)
            search = self._searches[key]
            search.know(values, score(known), most=_most(known))
            if search.without_gain >= self._patience:
                raise NothingToPropose("other numbers have not helped for long")
            fitting = Fitting(space, request.task)
            chosen = search.suggest(self._draw(request), lambda some: not fitting.problem(some))
            if chosen is None:
                raise NothingToPropose("all numbers that fit were tried")
            candidate = parent.model_copy(update={"source": apply(space, chosen)})
            self._origins[candidate.content_hash] = key, chosen
            return Proposal(
                candidate=candidate,
                proposer=self.name,
                parents=(parent.content_hash,),
                summary=_summary(values, chosen),
                details={"structure": key, "values": chosen, "domains": _written(search.domains)},
            )

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        details = proposal.details
        values: Values = dict(details["values"])
        with self._lock:
            search = self._search(details["structure"], _domains(details["domains"]))
            wrong = evaluation.stage is Stage.INCORRECT
            known = _known_score(evaluation)
            search.know(values, known, most=_most(evaluation), wrong=wrong)
            self._origins[proposal.candidate.content_hash] = details["structure"], values

    def _locate(self, request: Request, parent: Candidate) -> tuple[str, Space, Values]:
        """The structure of the parent, the source to write values into, the parent's values."""
        if parent.content_hash in self._origins:
            key, values = self._origins[parent.content_hash]
            if key in self._roots:
                return key, self._roots[key], values
        space = find(parent.source)
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
