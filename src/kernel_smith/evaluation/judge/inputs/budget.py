"""How much memory the sets of one workload may take."""

from __future__ import annotations

from typing import NamedTuple

from kernel_smith.evaluation.judge.inputs.footprint import Footprint

_CALLS_KEPT = 8  # of a small workload, at least
_LONG_CALL = 0.1  # seconds: of longer ones fewer are made
_ALLOWANCE = 3 << 30  # for contexts and whatever does not grow with a workload


class Budget(NamedTuple):
    """In bytes."""

    kept: int  # for sets that are kept
    at_once: int  # for what the oracle is asked about
    free: int  # in all

    def is_small(self, footprint: Footprint) -> bool:
        """Can many calls be kept, and computed in double precision, at once?"""
        kept = footprint.call <= self.kept // _CALLS_KEPT and footprint.peak <= self.kept
        return kept and footprint.seconds <= _LONG_CALL

    def affords_oracle(self, footprint: Footprint) -> bool:
        """Can all of a call be computed in double precision, within what judging takes anyway?"""
        needed = footprint.inputs + 2 * footprint.peak + 2 * footprint.outputs
        return needed <= min(self.free, footprint.lane + _ALLOWANCE)
