"""The chooser: proposes the edit that a learnt policy draws from those that are possible."""

from __future__ import annotations

import random
import threading
from collections import defaultdict

from kernel_smith.proposers.base import NothingToPropose, parent_of
from kernel_smith.proposers.chooser.adviser import Advice, Adviser
from kernel_smith.proposers.chooser.options import Menu, Option, menu_at
from kernel_smith.proposers.mutator.proposals import make_proposal, signature_of
from kernel_smith.proposers.mutator.sites import machine_of
from kernel_smith.records import Elite, Evaluation, Note, Proposal, Question, Request

_LEAST = 1e-9  # so that also what is never likely can be drawn, where nothing else is left


class Chooser:
    """A `Writer`. Deterministic given the policy, the seed and what was asked before.

    Where there is a question, it says which edit it would make, for another to carry out.
    """

    name = "chooser"

    def __init__(self, adviser: Adviser, seed: int = 0) -> None:
        self._adviser = adviser
        self._seed = seed
        self._lock = threading.Lock()
        self._tried: dict[str, set[str]] = defaultdict(set)

    def propose(self, request: Request) -> Proposal | Note:
        """Return the parent with one edit that was not tried on it, or that edit in words.

        Raises `NothingToPropose`.
        """
        elite = parent_of(request)
        option, advice = self._choose(elite, request.seed)
        if request.section(Question) is not None:
            return Note(text=str(option), conversation=advice.conversation)
        made = make_proposal(self.name, elite, option.program, [(option.edit, option.site)])
        return made.model_copy(update={"conversation": advice.conversation})

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Remember what was tried; the policy itself stays as it was trained."""
        with self._lock:
            self._tried[proposal.parents[0]].add(signature_of(proposal))

    def _choose(self, elite: Elite, seed: int) -> tuple[Option, Advice]:
        """Draw an option. Nobody waits for a lock while a model is asked, so some of what it was
        asked about may have been tried by then."""
        parent = elite.candidate.content_hash
        while True:
            menu, tries = self._menu(elite)
            advice = self._adviser.advise(menu, elite.evaluation)
            rng = random.Random(f"{self._seed} {seed} {tries} {parent}")
            with self._lock:
                tried = self._tried[parent]
                pairs = zip(menu.options, advice.odds, strict=True)
                left = {option: odds for option, odds in pairs if option.signature not in tried}
                if left:
                    weights = [odds + _LEAST for odds in left.values()]
                    option = rng.choices(list(left), weights)[0]
                    tried.add(option.signature)
                    return option, advice

    def _menu(self, elite: Elite) -> tuple[Menu, int]:
        """Return the options that were not tried, and how many were."""
        parent = elite.candidate
        with self._lock:
            tried = frozenset(self._tried[parent.content_hash])
        menu = menu_at(parent, machine_of(elite.evaluation), without=tried)
        if not menu.options:
            raise NothingToPropose(f"every edit was tried on {parent.content_hash[:12]}")
        return menu, len(tried)
