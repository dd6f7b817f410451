"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

EngineAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Who evaluates: a service (http://HOST:PORT) or a Ray cluster (ray); default: here.",
    ),
]

PrecisionName = Annotated[
    str | None,
    typer.Option(
        metavar="strict|tf32|bf16|fp16",
        help="The coarsest arithmetic that a candidate may use; default: what the task says.",
    ),
]
