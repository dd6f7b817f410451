"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

EngineAddress = Annotated[
    str | None, typer.Option(metavar="URL", help="A service that evaluates; default: here.")
]
