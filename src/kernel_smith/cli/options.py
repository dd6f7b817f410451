"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskName = Annotated[str, typer.Argument(help="A built-in task's name, or a task file.")]

RunName = Annotated[str, typer.Argument(help="A run's name, its beginning, or `latest`.")]

StoreFile = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", help="The file that runs are kept in.")
]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]

Lanes = Annotated[int, typer.Option(min=1, help="Candidates evaluated at once.")]

BackendName = Annotated[
    str,
    typer.Option(metavar="NAME", help="The kernels' dialect: cpp, triton, cuda, maca or hip."),
]

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

ProposerNames = Annotated[
    list[str] | None,
    typer.Option(
        help="Ask only these: tuner, mutator, chooser, merger, model, seed. May be repeated.",
        metavar="NAME",
    ),
]

PolicyName = Annotated[
    str | None,
    typer.Option(
        help="What the chooser draws from: a policy's file, a model that tells log-probabilities "
        "(NAME@BASE_URL), or a folder with a model or an adapter; default: what is shipped.",
        metavar="WHERE",
    ),
]

ModelNames = Annotated[
    list[str] | None,
    typer.Option(
        help="A model to ask, as NAME[@BASE_URL][,key=value]. May be repeated.", metavar="NAME"
    ),
]

ModelsFile = Annotated[Path | None, typer.Option(help="A TOML file that names the models to ask.")]

Patience = Annotated[
    float, typer.Option(min=1, help="Seconds that one evaluation may take on this machine.")
]
PATIENCE = 1200.0
