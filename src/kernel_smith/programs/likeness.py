"""How much alike two candidates are: some are too much so to show both to whoever writes next."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from kernel_smith.programs.normalise import program
from kernel_smith.records import Candidate

_REMEMBERED = 512
_REMEMBERED_PAIRS = 4096
_ALIKE = 0.95
_SCAFFOLD = frozenset({"[", "]", "None"})
_NUMBER = re.compile(r"'?\.?\d[\w.']*")


def alike(one: Candidate, other: Candidate) -> bool:
    """Tell whether nearly all of their code is common to both; numbers do not count."""
    return one.backend == other.backend and _common(one.source, other.source) >= _ALIKE


def distance(one: Candidate, other: Candidate) -> float:
    """Tell how much of the larger one's code is not in the other: 0 to 1; numbers do not count."""
    return 1.0 if one.backend != other.backend else 1 - _common(one.source, other.source)


@lru_cache(maxsize=_REMEMBERED_PAIRS)
def _common(one: str, other: str) -> float:
    left, right = _profile(one), _profile(other)
    return (left & right).total() / max(left.total(), right.total(), 1)


@lru_cache(maxsize=_REMEMBERED)
def _profile(source: str) -> Counter[str]:
    """Tell how often each atom occurs, with one atom for all numbers."""
    atoms = [atom for atom in program(source).atoms if atom not in _SCAFFOLD]
    return Counter("0" if _NUMBER.fullmatch(atom) else atom for atom in atoms)
