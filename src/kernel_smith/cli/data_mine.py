"""`kernel-smith data mine`: tasks from the modules of Python packages."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli.exit_codes import NEGATIVE
from kernel_smith.cli.options import Quiet
from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.records.counts import counted

if TYPE_CHECKING:
    from kernel_smith.trajectories.mine import Summary

_SHOWN_REASONS = 8


def mine(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="Installed packages, folders, .py files, wheels or source archives.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where task files go.")
    ],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Look at so many more classes; default: all.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Classes tried out at once.")] = 1,
    timeout: Annotated[
        int, typer.Option(min=1, help="Seconds of computing for trying one class out.")
    ] = 20,
    admission: Annotated[
        bool,
        typer.Option(
            "--admission/--no-admission", help="Have the judge examine every task before it counts."
        ),
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Extract self-contained tasks from modules. Packages are read, and never imported.

    Run it again to go on where it was stopped. Exits with 1 if the folder holds no task then.
    """
    from kernel_smith.trajectories.mine import MineSettings
    from kernel_smith.trajectories.mine import mine as run

    settings = MineSettings(
        sources=sources,
        folder=output,
        limit=limit,
        workers=workers,
        seconds=timeout,
        admission=admission,
    )
    with progress(quiet) as report:
        summary = run(settings, report)
    if json:
        print_json({"folder": str(output), **summary.model_dump(mode="json")})
    else:
        _print(summary, output)
    raise typer.Exit(0 if summary.written else NEGATIVE)


def _print(summary: Summary, folder: Path) -> None:
    console.print(f"{folder}: {counted(summary.written, 'task')}", style="bold")
    console.print(
        f"  {summary.found} classes, {summary.standalone} stand alone, "
        f"{summary.ran} run, {summary.written} written"
    )
    for reason, count in list(summary.refusals.items())[:_SHOWN_REASONS]:
        console.print(f"  {count:6} {reason}")
    for what in summary.missing:
        console.print(f"  not enforced on this machine: {what}")
    if summary.tasks:
        path = folder / f"{next(iter(summary.tasks))}.py"
        print_next(shlex.join(["kernel-smith", "tasks", "show", str(path)]), "see one of them")
