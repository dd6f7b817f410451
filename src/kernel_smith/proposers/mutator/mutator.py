"""The mutator: proposes a parent with a structural edit that was not tried on it yet.

Edits that made candidates faster are tried more often: each has a score, how much its proposals
certainly gained, and the next one is drawn from what the scores leave open (Thompson sampling).
Some proposals chain two edits, since one may make room for the other.

What the compiler has undone at one program, such as a promise that it did not need, it will most
likely undo at others of the run. So such an edit is no part of a chain, and comes last elsewhere.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import repeat

from kernel_smith.proposers.base import NothingToPropose, parent_of
from kernel_smith.proposers.credit import gain_of
from kernel_smith.proposers.mutator.edit import Edit, Machine, Site
from kernel_smith.proposers.mutator.priors import expected_of, success
from kernel_smith.proposers.mutator.proposals import left_no_trace, make_proposal, signature_of
from kernel_smith.proposers.mutator.registry import EDITS
from kernel_smith.proposers.mutator.sites import (
    Sites,
    all_sites,
    applied,
    is_of_use,
    machine_of,
    signature,
)
from kernel_smith.records import Candidate, Elite, Evaluation, Plan, Proposal, Request

_CHAIN_SHARE = 0.3
_ATTEMPTS = 20


@dataclass
class _Record:
    """How an edit did so far, beside what was expected of it."""

    paid: float
    failed: float

    def note(self, success: float, weight: float) -> None:
        self.paid += weight * success
        self.failed += weight * (1 - success)


class Mutator:
    """A `Writer`. Deterministic given the seed and what was asked before."""

    name = "mutator"

    def __init__(self, seed: int = 0, edits: Iterable[Edit] = EDITS) -> None:
        self._edits = tuple(edits)
        self._seed = seed
        self._lock = threading.Lock()
        self._tried: dict[str, set[str]] = defaultdict(set)
        # Edits at places where the compiler made nothing of them, by parent.
        self._undone: dict[str, set[str]] = defaultdict(set)
        self._records = {edit.name: _Record(*expected_of(edit)) for edit in self._edits}

    def propose(self, request: Request) -> Proposal:
        """Return the parent with one edit, or with two. Raises `NothingToPropose`."""
        elite = parent_of(request)
        parent, machine = elite.candidate, machine_of(elite.evaluation)
        plan = request.section(Plan)
        if plan is not None:
            return self._carry_out(plan, elite, machine, request.seed)
        with self._lock:
            tried = self._tried[parent.content_hash]
            rng = random.Random(f"{self._seed} {request.seed} {len(tried)} {parent.content_hash}")
            here = self._undone[parent.content_hash]
            anywhere = here.union(*self._undone.values())
            for left_out in (*repeat(anywhere, _ATTEMPTS - 1), here):
                chosen = self._choose(parent, machine, tried, left_out, rng)
                if chosen is not None:
                    return make_proposal(self.name, elite, *chosen)
        raise NothingToPropose(f"every edit was tried on {parent.content_hash[:12]}")

    def _carry_out(self, plan: Plan, elite: Elite, machine: Machine, seed: int) -> Proposal:
        """The edit that somebody else has chosen, at a site where it was not tried yet."""
        parent = elite.candidate
        rng = random.Random(f"{self._seed} {seed} {plan.edit} {parent.content_hash}")
        with self._lock:
            tried = self._tried[parent.content_hash]
            sites = _untried(self._sites(parent, machine), tried).get(plan.edit, [])
            if sites:
                site = _drawn(sites, rng)
                tried.add(signature([(plan.edit, site)]))
                edit = next(edit for edit in self._edits if edit.name == plan.edit)
                return make_proposal(self.name, elite, applied(parent, edit, site), [(edit, site)])
        raise NothingToPropose(f"no place is left for the edit {plan.edit or plan.text[:40]!r}")

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Credit the edits of a proposal with its success, or charge them."""
        edits = proposal.details["edits"]
        gain = gain_of(proposal, evaluation)
        paid = success(gain.certain) if gain is not None else 0.0  # nothing for what may be noise
        with self._lock:
            self._tried[proposal.parents[0]].add(signature_of(proposal))
            if len(edits) == 1 and left_no_trace(proposal, evaluation):
                self._undone[proposal.parents[0]].add(signature_of(proposal))
            for name in edits:
                if name in self._records:  # an older version may have known others
                    self._records[name].note(paid, 1 / len(edits))

    def _choose(
        self,
        parent: Candidate,
        machine: Machine,
        tried: set[str],
        left_out: Set[str],
        rng: random.Random,
    ) -> tuple[Candidate, list[tuple[Edit, Site]]] | None:
        """Return a change that was not tried yet; None if the one that was drawn leads nowhere."""
        sites = _untried(self._sites(parent, machine), left_out)
        fresh = _untried(sites, tried)
        chain = not fresh or rng.random() < _CHAIN_SHARE
        candidate, steps = parent, []
        for number in range(2 if chain else 1):
            open_sites = sites if chain else fresh
            if number:
                open_sites = _untried(self._sites(candidate, machine), left_out)
            if not open_sites:
                return None
            edit, site = self._draw(open_sites, rng)
            candidate = applied(candidate, edit, site)
            steps.append((edit, site))
        key = signature([(edit.name, site) for edit, site in steps])
        is_new = key not in tried
        tried.add(key)
        return (candidate, steps) if is_of_use(parent, candidate) and is_new else None

    def _sites(self, candidate: Candidate, machine: Machine) -> Sites:
        return all_sites(self._edits, candidate.backend, candidate.source, machine)

    def _draw(self, sites: Sites, rng: random.Random) -> tuple[Edit, Site]:
        promise = {}
        for name in sorted(sites):
            record = self._records[name]
            promise[name] = rng.betavariate(record.paid, record.failed)
        best = max(promise, key=lambda name: promise[name])
        edit = next(edit for edit in self._edits if edit.name == best)
        return edit, _drawn(sites[best], rng)


def _drawn(sites: list[Site], rng: random.Random) -> Site:
    """Return one of them; what changes several places alike is as likely as all of these."""
    return rng.choices(sites, [site.places for site in sites])[0]


def _untried(sites: Sites, tried: Set[str]) -> Sites:
    fresh = {
        name: [site for site in own if signature([(name, site)]) not in tried]
        for name, own in sites.items()
    }
    return {name: own for name, own in fresh.items() if own}
