"""What is expected of an edit before a run knows better.

Where recorded runs have tried it, they decide: how often it paid, and how much. For edits that were
learnt from series of told programs, what these gained by the same change counts as if this run had
seen it. A promise stands in where there is neither, or where the machine of those runs could not
have shown it. `benchmarks/edit_priors.py` tells what that is worth.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

from kernel_smith.knowledge.measured import Move, Series, all_measured
from kernel_smith.proposers.mutator.edit import Edit

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
    "group-programs": 2.0,
    "keep-values": 3.0,
    "pack-elements": 4.0,
    "pack-loop": 4.0,
    "fuse-moments": 3.0,
    "grid-stride": 2.0,
    "split-thread-sum": 2.0,
    "wave-reduction": 2.0,
    "one-pass-softmax": 3.0,
    # Of 50 steps of the mutator on an H200, most of which were such hints, three made winners
    # (`benchmarks/results/optimize_h200.json`), and none of these gained much.
    "eviction-policy": 0.3,
    "cache-modifier": 0.3,
    "contiguity-hint": 0.3,
    "reciprocal": 0.3,
}


class Expected(NamedTuple):
    """The parameters of a beta distribution: successes and failures."""

    paid: float = 1.0
    failed: float = 2.0


def success(gain: float) -> float:
    """From 0 for no gain to 1 for one that one would hope for."""
    return min(max(math.log(gain) / math.log(_GREAT), 0.0), 1.0)


def expected_of(edit: Edit) -> Expected:
    """Return what to expect of an edit on its backends."""
    if edit.name in PROMISES:
        return Expected(paid=PROMISES[edit.name])
    measured = [each for each in all_measured() if each.backend in edit.backends]
    recorded = learnt_from(move for each in measured for move in each.moves)
    if edit.name in recorded:
        return recorded[edit.name]
    return seen_in((series for each in measured for series in each.series), edit.told)


def seen_in(series: Iterable[Series], changes: Collection[str]) -> Expected:
    """As if every such change of the best program so far had been tried once more."""
    paid, failed = Expected()
    for one in series:
        best = None
        for program in one.programs:
            if best is not None and program.change in changes:
                gained = success(program.speed / best)
                paid, failed = paid + gained, failed + 1 - gained
            best = max(best or 0.0, program.speed)
    return Expected(paid, failed)


def learnt_from(moves: Iterable[Move]) -> dict[str, Expected]:
    """By name, from how moves did in recorded runs."""
    return {move.name: _expected(move) for move in moves}


def _expected(move: Move) -> Expected:
    successes = move.faster * success(move.gain) if move.gain is not None else 0.0
    rate = (successes + _USUAL * _DOUBT) / (move.tried + _DOUBT)
    return Expected(_TRUST * rate, _TRUST * (1 - rate))
