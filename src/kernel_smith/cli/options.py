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
