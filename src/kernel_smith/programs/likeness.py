"""Whether two candidates are too much alike to show both to whoever writes the next one."""

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
    """Whether nearly all of their code is common to both; numbers do not count."""
    return one.backend == other.backend and _alike(one.source, other.source)


@lru_cache(maxsize=_REMEMBERED_PAIRS)
def _alike(one: str, other: str) -> bool:
    left, right = _profile(one), _profile(other)
    common = (left & right).total()
    return common >= _ALIKE * max(left.total(), right.total())


@lru_cache(maxsize=_REMEMBERED)
def _profile(source: str) -> Counter[str]:
    """How often each atom occurs, with one atom for all numbers."""
    atoms = [atom for atom in program(source).atoms if atom not in _SCAFFOLD]
    return Counter("0" if _NUMBER.fullmatch(atom) else atom for atom in atoms)
