"""The OpenAPI description: bodies are read by hand here, so their schemas are added by hand."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from kernel_smith.records import Job

_PLACE = "#/components/schemas/"


class ProblemText(BaseModel):
    """Every answer with a status from 400 on."""

    error: str
    hint: str


class Jobs(BaseModel):
    """Several jobs, without their evaluations."""

    jobs: list[Job]


class FoundJobs(BaseModel):
    """Several jobs with their evaluations; null where there is none."""

    jobs: list[Job | None]


class Capacity(BaseModel):
    """What the service can take."""

    lanes: int
    waiting: int
    running: int
    accepting: bool
    max_batch: int
    max_body: int


def body_of(kind: type[BaseModel]) -> dict[str, Any]:
    """What a route with such a body adds to its description."""
    content = {"application/json": {"schema": {"$ref": f"{_PLACE}{kind.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}}


def answers(kind: type[BaseModel], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route: this record, or a problem."""
    schema = {"schema": {"$ref": f"{_PLACE}{kind.__name__}"}}
    problem = {"schema": {"$ref": f"{_PLACE}{ProblemText.__name__}"}}
    described: dict[int | str, dict[str, Any]] = {
        status: {"description": kind.__name__, "content": {"application/json": schema}}
        for status in statuses
    }
    described["default"] = {
        "description": "A problem",
        "content": {"application/json": problem},
    }
    return described


def text(media_type: str) -> dict[int | str, dict[str, Any]]:
    """The answers of a route: text of this kind, or a problem."""
    described = answers(ProblemText)
    content = {media_type: {"schema": {"type": "string"}}}
    return {200: {"description": "Text", "content": content}, **described}


def install(app: FastAPI, *bodies: type[BaseModel]) -> None:
    """Let the application describe its bodies, too."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(
                title=app.title,
                version=app.version,
                description=app.description,
                routes=app.routes,
            )
            kinds: list[type[BaseModel]] = [*bodies, Jobs, FoundJobs, Capacity, ProblemText]
            _, definitions = models_json_schema(
                [(kind, "validation") for kind in kinds],
                ref_template=_PLACE + "{model}",
            )
            components = schema.setdefault("components", {}).setdefault("schemas", {})
            components.update(definitions["$defs"])
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]
