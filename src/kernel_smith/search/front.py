"""Who is best on which workload: a gain on one of four hardly shows in the mean of all.

Programs are compared by what is certain of their speedup on each workload. The front holds those
that no other beats everywhere (Pareto).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_smith.records import Elite, score

Speeds = dict[str, float]


@dataclass
class WorkloadFront:
    """A fold over evaluations; programs go by their content hashes."""

    members: dict[str, Speeds] = field(default_factory=dict)
    """Those that no other beats, in the order in which they came to the front."""
    _behind: dict[str, Speeds] = field(default_factory=dict)
    _specialists: dict[str, str] | None = None

    def note(self, elite: Elite) -> None:
        """Put what a program shows now in the place of what was known; one that failed leaves."""
        name = elite.candidate.content_hash
        self._specialists = None
        self._behind.pop(name, None)
        if self.members.pop(name, None) is not None:
            # It may have kept others off the front.
            behind, self._behind = self._behind, {}
            for other, speeds in behind.items():
                self._place(other, speeds)
        speeds = workload_scores(elite)
        if speeds:
            self._place(name, speeds)

    def specialists(self) -> dict[str, str]:
        """Return the fastest program of each workload; of equals the one that came first."""
        if self._specialists is None:
            found: dict[str, str] = {}
            for name, speeds in self.members.items():
                for workload, speed in speeds.items():
                    if workload not in found or speed > self.members[found[workload]][workload]:
                        found[workload] = name
            self._specialists = found
        return self._specialists

    def _place(self, name: str, speeds: Speeds) -> None:
        if any(_beats(other, speeds) for other in self.members.values()):
            self._behind[name] = speeds
            return
        for other in [other for other, theirs in self.members.items() if _beats(speeds, theirs)]:
            self._behind[other] = self.members.pop(other)
        self.members[name] = speeds


def _beats(one: Speeds, other: Speeds) -> bool:
    """Is it as fast everywhere, and faster somewhere?"""
    if one.keys() != other.keys() or one == other:
        return False
    return all(one[workload] >= other[workload] for workload in other)


def workload_scores(elite: Elite) -> Speeds:
    """Return the lower end of the speedup on each workload; nothing for what earned no timing."""
    timing = elite.evaluation.timing
    if timing is None or score(elite.evaluation) <= 0:
        return {}
    return {each.workload: each.baselines[0].speedup.low for each in timing.workloads}
