"""What is expected of an edit before a run knows better.

Where recorded runs have tried it, they decide: how often it paid, and how much. A promise does
where there are no such runs, or where the machine of those could not have shown it.
`benchmarks/edit_priors.py` tells what that is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from kernel_smith.knowledge.measured import Move, all_measured

_GREAT = 1.3  # a gain that one would hope for
_TRUST = 12.0  # tries that the record of other tasks is worth
_USUAL, _DOUBT = 0.1, 5.0  # success of an edit that was hardly tried, and how many tries weigh more

# Successes beside two failures, taken on trust. These change what the hardware does (fewer passes,
# more work in flight), others mostly how the compiler goes about it. Edits for threads are here,
# too: the recorded runs had one core, on which they gain nothing, and there they are not proposed.
PROMISES = {
    "parallelise-loop": 4.0,
    "private-buffer": 4.0,
    "schedule-loop": 1.0,
    "collapse-loops": 1.0,
    "persistent-programs": 2.0,
    "group-programs": 2.0,
    "rows-per-program": 2.0,
    "keep-values": 3.0,
    "pipeline-loop": 2.0,
    "pack-elements": 4.0,
    "pack-loop": 4.0,
    "fuse-moments": 3.0,
    "grid-stride": 2.0,
    "split-thread-sum": 2.0,
    "wave-reduction": 2.0,
}


class Expected(NamedTuple):
    """The parameters of a beta distribution: successes and failures."""

    paid: float = 1.0
    failed: float = 2.0


def success(gain: float) -> float:
    """From 0 for no gain to 1 for one that one would hope for."""
    return min(max(math.log(gain) / math.log(_GREAT), 0.0), 1.0)


def expected_of(edit: str) -> Expected:
    """What to expect of the edit with this name."""
    if edit in PROMISES:
        return Expected(paid=PROMISES[edit])
    return _recorded().get(edit, Expected())


def learnt_from(moves: Iterable[Move]) -> dict[str, Expected]:
    """By name, from how moves did in recorded runs."""
    return {move.name: _expected(move) for move in moves}


@cache
def _recorded() -> dict[str, Expected]:
    return learnt_from(move for measured in all_measured() for move in measured.moves)


def _expected(move: Move) -> Expected:
    successes = move.faster * success(move.gain) if move.gain is not None else 0.0
    rate = (successes + _USUAL * _DOUBT) / (move.tried + _DOUBT)
    return Expected(_TRUST * rate, _TRUST * (1 - rate))
