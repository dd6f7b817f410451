"""The body of a request: bounded while it arrives, then checked against its record."""

from __future__ import annotations

from http import HTTPStatus
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError

from kernel_smith.evaluation.service.problems import Problem, bad_body
from kernel_smith.records import JobRequest
from kernel_smith.records.base import Record

MAX_BATCH = 256

Body = TypeVar("Body", bound=BaseModel)


class Batch(Record):
    requests: tuple[JobRequest, ...] = Field(min_length=1, max_length=MAX_BATCH)


class Wanted(Record):
    ids: tuple[str, ...] = Field(min_length=1, max_length=MAX_BATCH)


async def read_body(request: Request, kind: type[Body], most: int) -> Body:
    """Refuses what is too large before it is parsed, and where possible before it is sent."""
    # A web page can make a browser send anything but this type to a service on the same machine.
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        what, hint = "the body is not declared as JSON", "send Content-Type: application/json"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, what, hint=hint)
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or int(declared) > most:
        raise _too_large(most)
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > most:
            raise _too_large(most)
    try:
        return kind.model_validate_json(bytes(received))
    except ValidationError as error:
        raise bad_body(error) from None


def _too_large(most: int) -> Problem:
    return Problem(
        HTTPStatus(413),
        f"the body is too large; at most {most} bytes are taken",
        hint="send fewer requests at once",
        # What is still on its way is not read, so the connection is of no more use.
        headers={"Connection": "close"},
    )
