"""What can be chosen at a program: at most 40 of the mutator's edits, each at one site.

The order is shuffled, so that a place in the list says nothing, and depends on the program and a
seed alone. A label is a letter: one token for every tokenizer, as numbers of two digits are not.
"""

from __future__ import annotations

import random
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernel_smith.proposers.mutator.edit import UNKNOWN, Edit, Machine, Site
from kernel_smith.proposers.mutator.registry import EDITS
from kernel_smith.proposers.mutator.sites import all_sites, applied, is_of_use, signature
from kernel_smith.records import Candidate

LABELS = string.ascii_uppercase + string.ascii_lowercase[:14]
MOST = len(LABELS)

_Made = tuple[Edit, Site, Candidate]


@dataclass(frozen=True)
class Option:
    """An edit at a site, with the program that it makes."""

    label: str
    edit: Edit
    site: Site
    program: Candidate

    def __str__(self) -> str:
        return f"{self.edit.name}: {self.site}"

    @property
    def signature(self) -> str:
        """What names this change of its parent, in whatever order it was listed."""
        return signature([(self.edit.name, self.site)])


@dataclass(frozen=True)
class Menu:
    """The options at a program. `left_out`: how many sites more there are, `useless`: how many
    change nothing or make the text too long."""

    parent: Candidate
    options: tuple[Option, ...]
    left_out: int = 0
    useless: int = 0


def menu_at(
    parent: Candidate,
    machine: Machine = UNKNOWN,
    *,
    seed: int = 0,
    edits: Sequence[Edit] = EDITS,
    most: int = MOST,
    without: Collection[str] = (),
) -> Menu:
    """Return the options at a program. Where there are too many, every kind of edit stays.

    `without`: the signatures of options that are not to be listed, because they were tried.
    """
    by_name = {edit.name: edit for edit in edits}
    sites = all_sites(tuple(edits), parent.backend, parent.source, machine)
    made = [
        (by_name[name], site, applied(parent, by_name[name], site))
        for name, own in sites.items()
        for site in own
        if signature([(name, site)]) not in without
    ]
    useful = [each for each in made if is_of_use(parent, each[2])]
    rng = random.Random(f"{seed} {parent.content_hash}")
    rng.shuffle(useful)
    kept = _one_of_each_kind_first(useful)[:most]
    rng.shuffle(kept)
    options = tuple(Option(label, *each) for label, each in zip(LABELS, kept, strict=False))
    return Menu(parent, options, len(useful) - len(options), len(made) - len(useful))


def _one_of_each_kind_first(made: list[_Made]) -> list[_Made]:
    kinds: set[str] = set()
    firsts: list[_Made] = []
    others: list[_Made] = []
    for each in made:
        (others if each[0].name in kinds else firsts).append(each)
        kinds.add(each[0].name)
    return firsts + others
