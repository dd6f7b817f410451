"""How requests become jobs, whichever route they came by."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from fastapi.concurrency import run_in_threadpool

from kernel_smith.evaluation.service import problems
from kernel_smith.evaluation.service.auth import Client
from kernel_smith.evaluation.service.parts import Parts
from kernel_smith.records import Job, JobRequest


def refuse_while_draining(parts: Parts) -> None:
    if parts.draining.is_set():
        raise problems.not_now("the service is about to stop and takes no more jobs")


async def take_in(parts: Parts, client: Client, requests: Sequence[JobRequest]) -> list[Job]:
    """All or none; no priority is higher than the client may ask for."""
    for each in requests:
        _refuse_unknown_task(parts, each)
    capped = [
        each.model_copy(update={"priority": min(each.priority, client.priority_cap)})
        for each in requests
    ]
    return await run_in_threadpool(parts.book.submit_many, client.name, capped)


def _refuse_unknown_task(parts: Parts, request: JobRequest) -> None:
    """The code of a task runs as the service does, so not everybody may bring one."""
    if parts.tasks is not None and request.task.content_hash not in parts.tasks:
        raise problems.Problem(
            HTTPStatus.FORBIDDEN,
            f"task {request.task.name} is not among those that this service evaluates",
            hint="ask whoever runs the service to add it (kernel-smith serve --task)",
        )
