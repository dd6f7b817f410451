"""Errors as JSON: `{"error": what, "hint": remedy}`, whatever went wrong, and never a traceback."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kernel_smith.errors import UserError
from kernel_smith.evaluation.service.book import QueueFull, UnknownJob

_log = logging.getLogger(__name__)

_HINTS = {
    HTTPStatus.NOT_FOUND: "GET /openapi.json lists what there is",
    HTTPStatus.METHOD_NOT_ALLOWED: "GET /openapi.json lists what there is",
}


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self, status: HTTPStatus, what: str, *, hint: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.hint = hint
        self.headers = headers

    def response(self) -> JSONResponse:
        body = {"error": self.what, "hint": self.hint}
        return JSONResponse(body, status_code=self.status, headers=self.headers)


def not_now(what: str) -> Problem:
    return Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        what,
        hint="ask again in a while; jobs that were accepted are kept",
        headers={"Retry-After": "5"},
    )


def bad_body(error: ValidationError) -> Problem:
    """The first thing that is wrong with a body, and where: 400 if it is no JSON, 422 otherwise."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        what, hint = f"the body is not JSON: {first['msg']}", "send one JSON object"
        return Problem(HTTPStatus.BAD_REQUEST, what, hint=hint)
    return _wrong_value("body", first["loc"], first["msg"])


def _wrong_value(source: str, place: tuple[int | str, ...], message: str) -> Problem:
    where = ".".join(str(part) for part in place) or source
    hint = "GET /openapi.json describes every request"
    return Problem(HTTPStatus(422), f"{where}: {message}", hint=hint)


def install(app: FastAPI) -> None:
    """Let every exception of the application end in such an answer."""
    app.add_middleware(Shield)

    @app.exception_handler(Problem)
    async def _problem(_: Request, error: Problem) -> Response:
        return error.response()

    @app.exception_handler(UnknownJob)
    async def _unknown(_: Request, error: UnknownJob) -> Response:
        hint = "it may be old and gone, or somebody else's; submit the request again"
        return Problem(HTTPStatus.NOT_FOUND, "there is no such job", hint=hint).response()

    @app.exception_handler(QueueFull)
    async def _full(_: Request, error: QueueFull) -> Response:
        seconds = str(max(1, math.ceil(error.retry_after)))
        return Problem(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too many jobs are waiting",
            hint=f"ask again in {seconds} s",
            headers={"Retry-After": seconds},
        ).response()

    @app.exception_handler(UserError)
    async def _trouble(_: Request, error: UserError) -> Response:
        # The user who can mend it runs the service; clients need not know where its files lie.
        _log.error("%s (%s)", error.what, error.hint)
        return not_now("the service has trouble with its files").response()

    @app.exception_handler(RequestValidationError)
    async def _parameter(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _wrong_value("request", tuple(first["loc"]), str(first["msg"])).response()

    @app.exception_handler(HTTPException)
    async def _http(_: Request, error: HTTPException) -> Response:
        status = HTTPStatus(error.status_code)
        headers = dict(error.headers) if error.headers else None
        hint = _HINTS.get(status, "")
        return Problem(status, str(error.detail), hint=hint, headers=headers).response()


class Shield:
    """Tells of a defect as of any problem, and keeps the connection where the answer is whole."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except ClientDisconnect:
            pass  # nobody is left to be answered
        except Exception:
            if begun or scope["type"] != "http":
                raise
            _log.exception("%s %s failed", scope["method"], scope["path"])
            hint = "this is a defect of the service; its log says more"
            problem = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error", hint=hint)
            await problem.response()(scope, receive, send)
