"""One cell: the few best programs of a kind, and how certain it is that they are.

Members are ranked by the speedup that is certain, the lower end of its interval; of equals the
older one comes first. A full cell gives up a member only to a newcomer that is certainly better:
all of its interval lies above all of the member's. A newcomer that ranks first without being
certainly better takes one extra place, as the contender, until it is measured again or outranked.
So chance displaces nobody, and the best program of a cell is never turned away.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_smith.records import Elite, Interval
from kernel_smith.search.islands.features import CellKey


@dataclass(frozen=True, eq=False)
class Member:
    """An elite in its place. Members are compared by identity."""

    elite: Elite
    key: str
    """The content hash of its candidate."""
    program: str
    """The fingerprint of its candidate."""
    born: int
    """When it first came to the archive, counted in programs."""
    cell: CellKey
    speedup: Interval

    @property
    def score(self) -> float:
        return self.speedup.low

    @property
    def rank(self) -> tuple[float, int]:
        """Smaller is better."""
        return (-self.speedup.low, self.born)

    def certainly_beats(self, other: Member) -> bool:
        return self.speedup.low > other.speedup.high


@dataclass(frozen=True)
class Admission:
    """Whether a newcomer got in, and who had to leave for it."""

    kept: bool
    displaced: Member | None = None


class Cell:
    """At most `capacity` established members, and one contender."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._established: list[Member] = []
        self._contender: Member | None = None

    @property
    def members(self) -> list[Member]:
        """All of them, the best first."""
        extra = [] if self._contender is None else [self._contender]
        return sorted(self._established + extra, key=lambda member: member.rank)

    @property
    def best(self) -> Member | None:
        members = self.members
        return members[0] if members else None

    def admit(self, newcomer: Member) -> Admission:
        return self._establish(newcomer) or self._challenge(newcomer)

    def replace(self, known: Member, measured: Member) -> Member | None:
        """Put new measurements in a member's place. Returns who had to leave for a contender."""
        if self._contender is known:
            self._contender = measured
        else:
            self._established[self._established.index(known)] = measured
        return self._settle()

    def remove(self, member: Member) -> None:
        if self._contender is member:
            self._contender = None
        else:
            self._established.remove(member)
            self._settle()

    def _establish(self, newcomer: Member) -> Admission | None:
        if len(self._established) < self._capacity:
            self._established.append(newcomer)
            return Admission(kept=True)
        beaten = [member for member in self._established if newcomer.certainly_beats(member)]
        if not beaten:
            return None
        last = max(beaten, key=lambda member: member.rank)
        self._established[self._established.index(last)] = newcomer
        return Admission(kept=True, displaced=last)

    def _challenge(self, newcomer: Member) -> Admission:
        holder = self._contender
        first = all(newcomer.rank < member.rank for member in self.members)
        if not first and not (holder and newcomer.certainly_beats(holder)):
            return Admission(kept=False)
        self._contender = newcomer
        return Admission(kept=True, displaced=holder)

    def _settle(self) -> Member | None:
        """Establish the contender if new measurements, or a free place, allow it."""
        if self._contender is None:
            return None
        admission = self._establish(self._contender)
        if admission is None:
            return None
        self._contender = None
        return admission.displaced
