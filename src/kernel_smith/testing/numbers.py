"""Programs that are numbers, the larger the faster, and a proposer that changes them."""

from __future__ import annotations

import random
import threading
from concurrent.futures import Future

from kernel_smith.proposers.base import NothingToPropose, parent_of
from kernel_smith.records import Candidate, Evaluation, Note, Proposal, Request

PROGRAM = "class ModelNew:\n    speed = {speed}\n"


def program(speed: float) -> Candidate:
    return Candidate(source=PROGRAM.format(speed=round(speed, 6)), name="candidate.py")


def speed_of(candidate: Candidate) -> float:
    return float(candidate.source.rpartition("=")[2])


class Nudger:
    """A worker that proposes the parent's number, changed by a few percent, at once."""

    name = "nudger"
    begins = False

    def __init__(self, most: int | None = None) -> None:
        self._left = most
        self._lock = threading.Lock()
        self.learned: list[str] = []

    def start(self, request: Request) -> Future[Proposal | Note]:
        future: Future[Proposal | Note] = Future()
        try:
            future.set_result(self.propose(request))
        except Exception as error:
            future.set_exception(error)
        return future

    def propose(self, request: Request) -> Proposal:
        with self._lock:
            if self._left is not None:
                if self._left == 0:
                    raise NothingToPropose
                self._left -= 1
        rng = random.Random(request.seed)
        parent = parent_of(request).candidate
        child = program(speed_of(parent) * rng.uniform(0.95, 1.1))
        return Proposal(
            candidate=child, proposer=self.name, parents=(parent.content_hash,), summary="nudged"
        )

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        self.learned.append(proposal.candidate.content_hash)

    def close(self) -> None: ...
