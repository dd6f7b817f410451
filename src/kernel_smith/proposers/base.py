"""What workers can do: answer a request with a candidate, and learn what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from kernel_smith.errors import UserError
from kernel_smith.records import (
    Candidate,
    Conversation,
    Elite,
    Evaluation,
    Note,
    Proposal,
    Request,
    Sweep,
    Task,
)


class NothingToPropose(Exception):
    """This parent offers the worker nothing that it has not tried.

    `device_seconds`: what finding that out took of a device's time.
    """

    def __init__(self, why: str = "", *, device_seconds: float = 0.0) -> None:
        super().__init__(why)
        self.device_seconds = device_seconds


class WorkerFailed(UserError):
    """No program came of asking. `conversation` holds what was said and what it cost.

    `final`: this worker will answer nothing more in this run.
    """

    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(what, hint=hint)
        self.conversation: Conversation | None = None
        self.final = False


class Worker(Protocol):
    """Whoever does what a method asks for. Called from one thread."""

    name: str
    begins: bool
    """Can it write a first program, from the reference alone?"""

    def start(self, request: Request) -> Future[Proposal | Note]:
        """Begin with the work, and return at once. The future may raise `NothingToPropose` or
        `WorkerFailed`."""

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Hear what a proposal of this worker's was worth. Called again for each when a run is
        resumed, in the same order."""

    def close(self) -> None:
        """Give up what is under way."""


class Writer(Protocol):
    """One who changes programs while somebody waits. Called from several threads at once."""

    name: str

    def propose(self, request: Request) -> Proposal | Note:
        """Return the next candidate from a parent, or the answer to a question. Raises
        `NothingToPropose`."""

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """As a worker does."""


class InThreads:
    """A writer as a worker: so many threads wait for it."""

    begins = False

    def __init__(
        self, writer: Writer, threads: int, closing: Callable[[], None] = lambda: None
    ) -> None:
        """`closing` gives up what the writer holds."""
        self.name = writer.name
        self.learn = writer.learn
        self._writer = writer
        self._closing = closing
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=writer.name)

    def start(self, request: Request) -> Future[Proposal | Note]:
        return self._threads.submit(self._writer.propose, request)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._closing()


TryOut = Callable[[Task, Candidate, Sequence[str]], Sweep]
"""Has variants of an accepted program tried out, by their sources, and waits for what comes of it.
Raises `UserError` or `InternalError` where that cannot be done."""

Recall = Callable[[Candidate], str]
"""Says in a sentence what a run knows of a program, whatever its looks; nothing where it is new.
Called from several threads."""


def recall_nothing(candidate: Candidate) -> str:
    """Take every program for new, where there is no run."""
    return ""


def parent_of(request: Request) -> Elite:
    """Return the program to change. Raises `NothingToPropose` where there is none."""
    if request.parent is None:
        raise NothingToPropose("there is no program to change")
    return request.parent
