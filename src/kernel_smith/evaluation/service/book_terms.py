"""What the job book is told, and what it answers with, apart from jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kernel_smith.records.job import JobRequest


class QueueFull(Exception):
    """No more jobs may wait. Worth another try after `retry_after` seconds."""

    def __init__(self, what: str, retry_after: float) -> None:
        super().__init__(what)
        self.retry_after = retry_after


class UnknownJob(KeyError):
    """This client has no such job."""


@dataclass(frozen=True)
class BookLimits:
    waiting: int = 10_000
    waiting_per_client: int = 2_000
    attempts: int = 3  # times that an evaluation may be begun
    keep_seconds: float = 86_400  # how long a job is kept after its end
    keep_jobs: int = 200_000  # how many of those


DEFAULT_LIMITS = BookLimits()


class Taken(NamedTuple):
    """A job to evaluate now."""

    id: str
    request: JobRequest
    attempt: int


class ClientUse(NamedTuple):
    waiting: int
    running: int
    done: int
    failed: int
    cancelled: int
    seconds: float  # of evaluation, ever
