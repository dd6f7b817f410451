"""The other candidate that one is timed beside, usually the one that it was made from.

A rival passes the same gates, up to the clock. What it does wrong there is
not the doing of the candidate that it was to be compared with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic

from kernel_smith.evaluation.judge.platform.participant import RIVAL, Participant, ParticipantT
from kernel_smith.evaluation.judge.processes.child import ChildFailed, Interrupted
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.records import Reason


@dataclass(frozen=True)
class Rival(Generic[ParticipantT]):
    """Ready to be timed."""

    participant: ParticipantT
    candidate_hash: str
    seconds: Mapping[str, float] = field(default_factory=dict)  # per call, by workload


class RivalFailed(Interrupted):
    """It passed all gates and failed when it was timed; the candidate is judged without it."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


@contextlib.contextmanager
def blame(participant: Participant) -> Iterator[None]:
    """What fails meanwhile is this participant's own failure."""
    try:
        yield
    except ChildFailed as failure:
        if participant.name != RIVAL:
            raise
        rejected = Rejected.from_failure(failure, loading=False)
        raise RivalFailed(rejected.reason, rejected.message) from failure
