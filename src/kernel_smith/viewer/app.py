"""The live page: the application's files, the data that it asks for, and word of what changed.

It only reads. Beyond this machine a token is asked for: the address with `?token=...` is opened
once, and the browser keeps it as a cookie that scripts cannot see.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse
from starlette.middleware.gzip import GZipMiddleware

import kernel_smith
from kernel_smith.errors import UserError
from kernel_smith.evaluation.service import problems
from kernel_smith.evaluation.service.admission import refuse_other_hosts
from kernel_smith.evaluation.service.problems import Problem
from kernel_smith.records import Record
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.page_files import page_files, served_frame
from kernel_smith.viewer.records import Contents
from kernel_smith.viewer.watching import Watching

_COOKIE = "kernel-smith-token"
_TYPES = {"js": "text/javascript", "css": "text/css"}
_SECONDS_BETWEEN = 0.5
_HEARTBEATS_AFTER = 20  # looks without news
_RETRY_MILLISECONDS = 1000  # before a browser that has lost the connection tries again
_MOST_STREAMS = 32
_MOST_PORTIONS = 1 << 20

Name = Annotated[str, Query(min_length=1, max_length=4096)]
Sequence = Annotated[int | None, Query(ge=0)]
Portion = Annotated[int, Query(ge=0, le=_MOST_PORTIONS)]


def make_app(book: RunBook, results: ResultBook, token: str | None) -> FastAPI:
    """`token`: what strangers have to know; None: only this machine is served."""
    app = FastAPI(title="kernel-smith dashboard", docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(_router(book, results, token))
    problems.install(app)
    app.add_middleware(GZipMiddleware, minimum_size=1024)

    @app.exception_handler(UserError)
    async def _unknown(_: Request, error: UserError) -> Response:
        return Problem(HTTPStatus.NOT_FOUND, error.what, hint=error.hint).response()

    return app


def _router(book: RunBook, results: ResultBook, token: str | None) -> APIRouter:
    def admit(request: Request) -> None:
        if token is None:
            refuse_other_hosts(request)
        elif not _knows(request, token):
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "a valid token is needed",
                hint="open the address that `kernel-smith dashboard` printed, with its ?token=",
            )

    router = APIRouter(dependencies=[Depends(admit)])
    watching = Watching(book)
    page, policy = served_frame()

    @router.get("/")
    def frame(request: Request) -> Response:
        if "token" in request.query_params and token is not None:
            answer: Response = RedirectResponse("./", HTTPStatus.SEE_OTHER)
            answer.set_cookie(_COOKIE, token, httponly=True, samesite="strict")
            return answer
        return HTMLResponse(page, headers={"Content-Security-Policy": policy} | _CAREFUL)

    @router.get("/page/{name}")
    def file(name: str) -> Response:
        kind = _TYPES.get(name.rpartition(".")[2])
        if kind is None or name not in page_files():
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no file {name}", hint="open /")
        return Response(page_files()[name], media_type=kind, headers=_CAREFUL)

    @router.get("/data/contents")
    def contents() -> Response:
        watching.read_costs()
        version = kernel_smith.__version__
        return _json(Contents(version=version, live=True, runs=book.cards(), results=results.names))

    @router.get("/data/run")
    def run(id: Name, after: Sequence = None) -> Response:
        return _json(book.changes(id, after))

    @router.get("/data/steps")
    def steps(id: Name, portion: Portion) -> Response:
        return _json(book.portion(id, portion))

    @router.get("/data/result")
    def result(id: Name) -> Response:
        return _json(results.page(id))

    @router.get("/data/winners")
    def winners(id: Name, portion: Portion) -> Response:
        return _json(results.portion(id, portion))

    @router.get("/data/changes")
    async def changes() -> Response:
        stream = _stream(watching)
        # From here on all news is told: whoever sees this answer begin may read the rest.
        first = await anext(stream)
        return StreamingResponse(
            _whole(first, stream),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    return router


_CAREFUL = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def _json(record: Record) -> Response:
    return Response(record.model_dump_json(), media_type="application/json", headers=_CAREFUL)


def _knows(request: Request, token: str) -> bool:
    header = request.headers.get("authorization", "").removeprefix("Bearer ")
    given = request.query_params.get("token") or request.cookies.get(_COOKIE) or header
    return hmac.compare_digest(given.encode(), token.encode())


async def _stream(watching: Watching) -> AsyncIterator[str]:
    """The ids of runs that have changed, until the browser goes away."""
    with watching.listener(_MOST_STREAMS):
        seen, quiet = await run_in_threadpool(watching.look), 0
        yield f": changes follow\nretry: {_RETRY_MILLISECONDS}\n\n"
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN)
            now = await run_in_threadpool(watching.look)
            changed = [run for run, state in now.items() if seen.get(run) != state]
            seen, quiet = now, 0 if changed else quiet + 1
            if changed:
                yield f"event: runs\ndata: {json.dumps(changed)}\n\n"
            elif quiet % _HEARTBEATS_AFTER == 0:
                yield ": nothing new\n\n"


async def _whole(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for each in rest:
        yield each
