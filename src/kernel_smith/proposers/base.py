"""What every proposer can do: suggest the next candidate, and learn what came of it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from kernel_smith.records import Beginning, Evaluation, Proposal, Request


class NothingToPropose(Exception):
    """This parent offers the proposer nothing that it has not tried."""


class Proposer(Protocol):
    """Called from several threads at once."""

    name: str

    def propose(self, request: Request) -> Proposal:
        """The next candidate from a parent. Raises `NothingToPropose`."""

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """What a proposal of this proposer's was worth. Called again for each when a run is
        resumed, in the same order."""

    def close(self) -> None:
        """Give up what is under way."""


@runtime_checkable
class Beginner(Proposer, Protocol):
    """One who can also write the first program, from the reference alone."""

    def begin(self, beginning: Beginning) -> Proposal: ...


@runtime_checkable
class Starter(Proposer, Protocol):
    """One who waits for an answer from elsewhere, and needs no thread meanwhile."""

    def start(self, request: Request) -> Future[Proposal]: ...
