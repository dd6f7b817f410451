"""A sweep: variants of one program, tried out side by side. A hint, and no verdict."""

from __future__ import annotations

from pydantic import Field

from kernel_smith.records.base import Record
from kernel_smith.records.evaluation import Interval
from kernel_smith.records.verdict import Reason


class Swept(Record):
    """What a sweep showed of one variant."""

    gain: Interval | None = Field(
        default=None, description="the parent's time over its own; None: it was not timed"
    )
    by_workload: dict[str, Interval] = Field(
        default={}, description="the same on each workload on which it was timed"
    )
    reason: Reason | None = Field(
        default=None, description="what was wrong with it; None without a gain: it was not reached"
    )


class Sweep(Record):
    """What a sweep showed of variants, in the order in which they were given."""

    swept: tuple[Swept, ...] = ()
    seconds: float = Field(default=0.0, ge=0)
    problem: str = Field(default="", description="why nothing was timed at all, if so")

    @property
    def timed(self) -> int:
        """How many variants were timed."""
        return sum(one.gain is not None for one in self.swept)
