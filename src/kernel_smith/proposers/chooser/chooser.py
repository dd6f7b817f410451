"""The chooser: proposes the edit that a learnt policy draws from those that are possible."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

from kernel_smith.proposers.base import NothingToPropose, parent_of
from kernel_smith.proposers.chooser.features import Facts, features_of
from kernel_smith.proposers.chooser.options import menu_at
from kernel_smith.proposers.chooser.policy import Policy
from kernel_smith.proposers.mutator.proposals import make_proposal, signature_of
from kernel_smith.proposers.mutator.sites import machine_of
from kernel_smith.records import Evaluation, Proposal, Request


class Chooser:
    """A `Writer`. Deterministic given the policy, the seed and what was asked before."""

    name = "chooser"

    def __init__(self, policy: Policy, seed: int = 0) -> None:
        self._policy = policy
        self._seed = seed
        self._lock = threading.Lock()
        self._tried: dict[str, set[str]] = defaultdict(set)

    def propose(self, request: Request) -> Proposal:
        """Return the parent with one edit that was not tried on it. Raises `NothingToPropose`."""
        elite = parent_of(request)
        parent = elite.candidate
        with self._lock:
            tried = self._tried[parent.content_hash]
            menu = menu_at(parent, machine_of(elite.evaluation), without=tried)
            if not menu.options:
                raise NothingToPropose(f"every edit was tried on {parent.content_hash[:12]}")
            odds = self._policy.probabilities(features_of(menu, Facts.of(elite.evaluation)))
            rng = random.Random(f"{self._seed} {request.seed} {len(tried)} {parent.content_hash}")
            option = rng.choices(menu.options, odds)[0]
            tried.add(option.signature)
        return make_proposal(self.name, elite, option.program, [(option.edit, option.site)])

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Remember what was tried; the policy itself stays as it was trained."""
        with self._lock:
            self._tried[proposal.parents[0]].add(signature_of(proposal))
