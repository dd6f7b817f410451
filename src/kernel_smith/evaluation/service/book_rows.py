"""Requests and jobs as rows of the job book, and back."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kernel_smith.records import Evaluation, Task
from kernel_smith.records.job import Job, JobError, JobRequest, JobState
from kernel_smith.store.texts import deflate, inflate

_REMEMBERED_TASKS = 16

WHOLE = (
    "jobs.id, jobs.state, jobs.priority, jobs.attempts, jobs.submitted, jobs.started, "
    "jobs.finished, jobs.outcome"
)
WITHOUT_EVALUATION = WHOLE.replace(
    "jobs.outcome", "CASE jobs.state WHEN 'failed' THEN jobs.outcome END"
)


@dataclass(frozen=True)
class Packed:
    """A request, ready to be stored: all that takes long is done before a transaction begins."""

    key: bytes
    task_sent: bytes
    task_hash: str
    task: str | bytes
    rest: str | bytes
    priority: int


def pack(request: JobRequest) -> Packed:
    task = request.task.model_dump_json()
    sent, content = _packed_task(task)
    return Packed(
        key=bytes.fromhex(request.key),
        task_sent=sent,
        task_hash=request.task.content_hash,
        task=content,
        rest=packed_text(request.model_dump_json(exclude={"task"})),
        priority=request.priority,
    )


# Most requests are about a few tasks, which need not be packed and unpacked for each of them.
@functools.lru_cache(maxsize=_REMEMBERED_TASKS)
def _packed_task(task: str) -> tuple[bytes, str | bytes]:
    # Tasks with the same content hash may lie at different paths, which messages mention.
    # One client must not get to see another's.
    return hashlib.sha256(task.encode()).digest(), packed_text(task)


@functools.lru_cache(maxsize=_REMEMBERED_TASKS)
def _unpacked_task(task: str | bytes) -> Task:
    return Task.model_validate_json(inflate(task))


def unpack(task: str | bytes, rest: str | bytes) -> JobRequest:
    return JobRequest.model_validate(json.loads(inflate(rest)) | {"task": _unpacked_task(task)})


def packed_text(text: str) -> str | bytes:
    return deflate(text, text.encode())


def job_of(row: tuple[Any, ...]) -> Job:
    """The job of a row of `WHOLE`, or of `WITHOUT_EVALUATION`."""
    identity, state, priority, attempts, submitted, started, finished, outcome = row
    fields = {
        "id": identity,
        "state": JobState(state),
        "priority": priority,
        "attempts": attempts,
        "submitted_at": _moment(submitted),
        "started_at": _moment(started),
        "finished_at": _moment(finished),
    }
    if state == JobState.FAILED:
        return Job(**fields, error=JobError.model_validate_json(inflate(outcome)))
    if state == JobState.DONE and outcome is None:
        # Its record insists on the evaluation, which whoever lists jobs did not ask for.
        return Job.model_construct(**fields)
    if state == JobState.DONE:
        return Job(**fields, evaluation=Evaluation.model_validate_json(inflate(outcome)))
    return Job(**fields)


def json_of(row: tuple[Any, ...]) -> str:
    """The job of a row of `WHOLE` as JSON. Its evaluation was checked when it was stored."""
    *brief, outcome = row
    if row[1] != JobState.DONE:
        return job_of(row).model_dump_json()
    head = job_of((*brief, None)).model_dump_json(exclude={"evaluation"})
    return f'{head.removesuffix("}")},"evaluation":{inflate(outcome)}}}'


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
