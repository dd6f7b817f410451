"""The web application: jobs are submitted, watched and cancelled; the service says how it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, StreamingResponse

import kernel_smith
from kernel_smith.evaluation.service import api_schema, problems, rewards
from kernel_smith.evaluation.service.admission import Asking, client_of
from kernel_smith.evaluation.service.auth import TokenFile
from kernel_smith.evaluation.service.bodies import MAX_BATCH, Batch, Wanted, read_body
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.following import Following
from kernel_smith.evaluation.service.intake import refuse_while_draining, take_in
from kernel_smith.evaluation.service.metrics import CountRequests, Metrics
from kernel_smith.evaluation.service.parts import Parts, Shared
from kernel_smith.evaluation.service.waiting import wait_for
from kernel_smith.records import Job, JobRequest, JobState

DEFAULT_MAX_BODY = 8 << 20

_LONGEST_WAIT = 60.0
_HEARTBEAT_SECONDS = 10.0
_MOST_LISTED = 1000
_HIGHEST_NUMBER = (1 << 63) - 1

jobs = APIRouter(prefix="/v1")
state = APIRouter()


def make_app(
    book: JobBook,
    dispatcher: Dispatcher,
    *,
    tokens: TokenFile | None,
    tasks: frozenset[str] | None = None,
    max_body: int = DEFAULT_MAX_BODY,
) -> FastAPI:
    """Its `Parts` are in `app.state.parts`; `draining` there stops the intake."""
    app = FastAPI(
        title="kernel-smith evaluation service",
        version=kernel_smith.__version__,
        description="Evaluates candidates: submit a job, wait for it, read its evaluation.",
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
    )
    metrics = Metrics(book)
    dispatcher.on_finished = metrics.finished
    app.state.parts = Parts(book, dispatcher, tokens, max_body, metrics, Following(book), tasks)
    app.include_router(jobs)
    app.include_router(rewards.router)
    app.include_router(state)
    problems.install(app)
    app.add_middleware(CountRequests, metrics=metrics)
    api_schema.install(
        app, JobRequest, Batch, Wanted, Job, rewards.RewardsRequest, rewards.RewardsAnswer
    )
    return app


@jobs.post(
    "/jobs",
    status_code=HTTPStatus.ACCEPTED,
    openapi_extra=api_schema.body_of(JobRequest),
    responses=api_schema.answers(Job, 200, 202),
)
async def submit(request: Request, client: Asking, parts: Shared) -> Response:
    """Ask for an evaluation. The same request again gives the same job, with status 200."""
    refuse_while_draining(parts)
    wanted = await read_body(request, JobRequest, parts.max_body)
    begun = datetime.now(UTC)
    [job] = await take_in(parts, client, [wanted])
    return _answer(job, HTTPStatus.OK if _was_known(job, begun) else HTTPStatus.ACCEPTED)


@jobs.post(
    "/jobs/batch",
    status_code=HTTPStatus.ACCEPTED,
    openapi_extra=api_schema.body_of(Batch),
    responses=api_schema.answers(api_schema.Jobs, 202),
)
async def submit_many(request: Request, client: Asking, parts: Shared) -> Response:
    """Ask for several evaluations, all or none. The jobs come in the order of the requests."""
    refuse_while_draining(parts)
    batch = await read_body(request, Batch, parts.max_body)
    submitted = await take_in(parts, client, batch.requests)
    return JSONResponse({"jobs": [_brief(job) for job in submitted]}, HTTPStatus.ACCEPTED)


@jobs.post(
    "/jobs/read",
    openapi_extra=api_schema.body_of(Wanted),
    responses=api_schema.answers(api_schema.FoundJobs, 200),
)
async def read(request: Request, client: Asking, parts: Shared) -> Response:
    """Several jobs with their evaluations, in the order of their ids; null: there is none."""
    wanted = await read_body(request, Wanted, parts.max_body)
    found = await run_in_threadpool(parts.book.whole, client.name, wanted.ids)
    text = ",".join(job or "null" for job in found)
    return Response(f'{{"jobs":[{text}]}}', media_type="application/json")


@jobs.get("/jobs/{job}", responses=api_schema.answers(Job, 200))
async def get(
    job: str,
    client: Asking,
    parts: Shared,
    wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT, allow_inf_nan=False)] = 0.0,
) -> Response:
    """One job; with `wait`, once it has ended or these seconds are over."""
    until = asyncio.get_running_loop().time() + wait
    return _answer(await wait_for(parts, client.name, job, until))


@jobs.get("/jobs", responses=api_schema.answers(api_schema.Jobs, 200))
async def list_jobs(
    client: Asking,
    parts: Shared,
    state: JobState | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = 100,
) -> Response:
    """The client's jobs without their evaluations; `after` is the last id of the page before."""
    found = await run_in_threadpool(
        parts.book.jobs, client.name, state=state, after=after, limit=limit
    )
    return JSONResponse({"jobs": [_brief(job) for job in found]})


@jobs.delete("/jobs/{job}", responses=api_schema.answers(Job, 200))
async def cancel(job: str, client: Asking, parts: Shared) -> Response:
    """A waiting job is cancelled at once; the answer of a running one is thrown away."""
    return _answer(await run_in_threadpool(parts.book.cancel, client.name, job))


@jobs.get("/events", responses=api_schema.text("text/event-stream"))
async def events(
    client: Asking,
    parts: Shared,
    after: Annotated[int | None, Query(ge=0, le=_HIGHEST_NUMBER)] = None,
) -> Response:
    """Changes of the client's jobs as they happen: those after this one, or those from now on."""
    if after is None:
        after = await run_in_threadpool(parts.following.newest, client.name)
    return StreamingResponse(
        _stream(parts, client.name, after),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _stream(parts: Parts, client: str, after: int) -> AsyncIterator[str]:
    with parts.following.listen(client) as listener:
        yield ": changes follow\n\n"
        while not parts.following.closed:
            changes = await run_in_threadpool(parts.book.changes, client, after, 0.0)
            for after, job in changes:
                data = job.model_dump_json(exclude={"evaluation"})
                yield f"id: {after}\nevent: job\ndata: {data}\n\n"
            if not changes and not await listener.changed(_HEARTBEAT_SECONDS):
                yield ": nothing new\n\n"


@jobs.get(
    "/capacity",
    dependencies=[Depends(client_of)],
    responses=api_schema.answers(api_schema.Capacity, 200),
)
def capacity(parts: Shared) -> api_schema.Capacity:
    """How much is evaluated at once, how much is asked for, and how large requests may be."""
    counts = parts.book.counts()
    return api_schema.Capacity(
        lanes=parts.dispatcher.capacity,
        waiting=counts.get(JobState.WAITING, 0),
        running=counts.get(JobState.RUNNING, 0),
        accepting=parts.ready,
        max_batch=MAX_BATCH,
        max_body=parts.max_body,
    )


@state.get("/healthz")
def healthz(parts: Shared) -> Response:
    """503 if only a restart helps."""
    health = parts.dispatcher.health()
    return JSONResponse(dict(health), 200 if health["alive"] else 503)


@state.get("/readyz")
def readyz(parts: Shared) -> Response:
    """503 while no jobs are taken."""
    ready = parts.ready
    return JSONResponse({"ready": ready}, 200 if ready else 503)


@state.get("/metrics", dependencies=[Depends(client_of)], responses=api_schema.text("text/plain"))
def metrics_text(parts: Shared) -> Response:
    """For Prometheus."""
    return Response(parts.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _was_known(job: Job, begun: datetime) -> bool:
    # The book keeps times as floating point numbers, which are not exact to the microsecond.
    return job.submitted_at < begun - timedelta(milliseconds=1)


def _answer(job: Job, status: HTTPStatus = HTTPStatus.OK) -> Response:
    return Response(job.model_dump_json(), status, media_type="application/json")


def _brief(job: Job) -> dict[str, Any]:
    return job.model_dump(mode="json", exclude={"evaluation"})
