"""A race: rounds in which a program and its variants are timed on the same inputs.

Who lies behind the leader beyond doubt drops out, so that time is spent on those that are close.
Where the gain of each is wanted, those drop out of which enough is known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from kernel_smith.evaluation.judge.timing.statistics import LogRatio, combine, estimate
from kernel_smith.records import Interval

Times = dict[str, float]  # seconds per call, by program


class Race:
    """`weights`: of the workloads, by name. `parent` takes part in every round."""

    def __init__(self, parent: str, weights: Mapping[str, float]) -> None:
        self._parent = parent
        self._weights = dict(weights)
        self._rounds: dict[str, list[Times]] = {name: [] for name in weights}

    def note(self, workload: str, seconds: Times) -> None:
        """Take the times of one round in."""
        self._rounds[workload].append(seconds)

    def gain(self, program: str) -> Interval | None:
        """The parent's time over this program's; None unless it was timed on every workload.

        It allows for what another process would have shown.
        """
        ratio = self._ratio(self._parent, program)
        return None if ratio is None else ratio.allowing_for_luck().interval()

    def gain_on(self, workload: str, program: str) -> Interval | None:
        """The same on one workload; None unless it was timed there."""
        ratio = self._ratio_on(workload, self._parent, program)
        return None if ratio is None else ratio.allowing_for_luck().interval()

    def still_running(self, programs: Collection[str]) -> list[str]:
        """Those of the programs that may be the fastest, the one that leads included."""
        gains = {program: self.gain(program) for program in programs}
        timed = {program: gain.value for program, gain in gains.items() if gain is not None}
        if not timed:
            return []
        leader = max(timed, key=timed.__getitem__)
        return [program for program in timed if not self._is_behind(program, leader)]

    def unsettled(self, programs: Collection[str], target: float) -> list[str]:
        """Those of which more rounds would tell more: half of the gain's interval is wider than
        `target`, and it does not end below a gain that could just be told at that width."""
        gains = {program: self.gain(program) for program in programs}
        return [
            program
            for program, gain in gains.items()
            if gain is None or (gain.high > 1 + 2 * target and gain.half_width > target)
        ]

    def _is_behind(self, program: str, leader: str) -> bool:
        ratio = self._ratio(leader, program)
        return program != leader and ratio is not None and ratio.interval().high < 1

    def _ratio(self, one: str, other: str) -> LogRatio | None:
        """How much longer one takes than the other."""
        parts = [self._ratio_on(workload, one, other) for workload in self._rounds]
        known = [part for part in parts if part is not None]
        return combine(known, list(self._weights.values())) if len(known) == len(parts) else None

    def _ratio_on(self, workload: str, one: str, other: str) -> LogRatio | None:
        """Round by round."""
        both = [times for times in self._rounds[workload] if one in times and other in times]
        if len(both) < 2:
            return None
        return estimate([math.log(times[one] / times[other]) for times in both])
