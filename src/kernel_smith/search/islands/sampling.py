"""Which members become parents, and which are shown beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from random import Random

from kernel_smith.programs.likeness import alike
from kernel_smith.records import Candidate
from kernel_smith.search.islands.cells import Member
from kernel_smith.search.islands.features import CellKey

Cells = Mapping[CellKey, tuple[Member, ...]]


def explored(cells: Cells, rng: Random) -> Member:
    """Any cell, and any member of it: small niches count as much as crowded ones."""
    return rng.choice(rng.choice(list(cells.values())))


def exploited(
    members: Sequence[Member], children: Mapping[str, int], greed: float, rng: Random
) -> Member:
    """Fast members more often, and those less often that have had their chances."""
    top = max(member.score for member in members)
    weights = [
        (member.score / top) ** greed / (1 + children.get(member.key, 0)) for member in members
    ]
    return rng.choices(members, weights)[0]


def pick_exemplars(
    own: Cells, others: Sequence[Member], parent: Candidate, count: int, rng: Random
) -> list[Member]:
    """Half from the top of the island, the rest the best of other cells, then of other islands.

    None is the parent, and no two, the parent included, are nearly the same program.
    """
    ranked = sorted(chain.from_iterable(own.values()), key=lambda member: member.rank)
    chosen = _unlike(ranked, parent, [], (count + 1) // 2)
    taken = {member.cell for member in chosen}
    diverse = [members[0] for key, members in own.items() if key not in taken]
    rng.shuffle(diverse)
    pool = chain(diverse, ranked, others)
    return _unlike(pool, parent, chosen, count)


def _unlike(
    pool: Sequence[Member] | chain[Member], parent: Candidate, chosen: list[Member], count: int
) -> list[Member]:
    """Go on choosing from the pool until there are `count`."""
    found = list(chosen)
    for member in pool:
        if len(found) >= count:
            break
        known = [parent, *(other.elite.candidate for other in found)]
        if not any(alike(member.elite.candidate, candidate) for candidate in known):
            found.append(member)
    return found
