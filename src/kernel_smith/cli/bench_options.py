"""Which problems a command is about: options that several commands of `bench` share."""

from __future__ import annotations

from typing import Annotated

import typer

Suites = Annotated[
    list[str],
    typer.Argument(
        metavar="SUITE", help="cpu, gpu, maca, a checkout, a data set, a folder, a file, a glob."
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(help="Only problems of this level, e.g. 1. May be repeated.", metavar="NUMBER"),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(help="Only problems of this category, a glob. May be repeated.", metavar="GLOB"),
]
Problems = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Only problems with such a name. May be repeated."),
]
Sample = Annotated[int | None, typer.Option(min=1, help="Draw so many of each level.")]
SampleSeed = Annotated[int, typer.Option(help="Which ones are drawn.")]
