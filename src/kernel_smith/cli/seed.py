"""`kernel-smith seed`: the framework compiler's own answer to a task, as a candidate file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kernel_smith.cli.candidates import check_writable, write_candidate
from kernel_smith.cli.options import PrecisionName, Quiet, TaskName
from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.cli.task_words import precision_words
from kernel_smith.errors import BadInput
from kernel_smith.proposers.seed import (
    DEFAULT,
    PATIENCE_MINUTES,
    RECIPES,
    Seed,
    find_recipe,
    make_seed,
)
from kernel_smith.tasks import find_task

_DEVICES = ("cpu", "cuda")
_ANYWHERE = f"For cpu {' or '.join(name for name, each in RECIPES.items() if each.anywhere)}."


def seed(
    task: TaskName,
    device: Annotated[str, typer.Option(help="What to compile for: cpu or cuda.")] = "cpu",
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Only for this workload; default: all. May be repeated.", metavar="NAME"),
    ] = None,
    own_kernels: Annotated[
        bool, typer.Option("--own-kernels", help="Kernels of ours in place of library calls.")
    ] = False,
    recipe: Annotated[
        str, typer.Option(help=f"One of: {', '.join(RECIPES)}. {_ANYWHERE}", metavar="NAME")
    ] = DEFAULT.name,
    precision: PrecisionName = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.")
    ] = None,
    patience: Annotated[float, typer.Option(min=1, help="Seconds that the compiler may take.")] = 60
    * PATIENCE_MINUTES,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write what torch.compile makes of a task as a candidate.

    Your task file is executed. Shapes are burnt in: the seed serves the workloads it was made for.
    """
    found = find_task(task, precision)
    if device not in _DEVICES:
        raise BadInput(f"no device is called {device!r}", hint="choose cpu or cuda")
    chosen = find_recipe(recipe)
    if device != "cuda" and not chosen.anywhere:
        raise BadInput(f"recipe {recipe} is for a GPU", hint="add --device cuda")
    check_writable(output or Path(f"{found.name}_seed.py"))
    with progress(quiet) as report:
        made = make_seed(found, device, workload, report, patience / 60, chosen)
    if own_kernels:
        made = _without_library(made)
    path = output or Path(f"{found.name}_seed_{made.backend}.py")
    write_candidate(path, made.source)
    if json:
        print_json({"path": str(path), **made.model_dump(mode="json")})
        return
    _print(made, path)
    command = ["kernel-smith", "evaluate", task, str(path), "--backend", made.backend]
    command += precision_words(found)
    print_next(shlex.join(command), "is it right, and how fast?")


def _without_library(made: Seed) -> Seed:
    if made.without_library:
        return made.model_copy(update={"source": made.without_library, "library_calls": ()})
    if made.library_calls:
        raise BadInput(
            f"there are no kernels of ours for {', '.join(made.library_calls)}",
            hint="leave out --own-kernels",
        )
    return made


def _print(made: Seed, path: Path) -> None:
    plural = "" if made.kernels == 1 else "s"
    workloads = ", ".join(made.workloads)
    what = f"{made.kernels} kernel{plural} for workloads {workloads}, by torch {made.torch}"
    console.print(f"{path}", style="bold")
    console.print(f"  {what}")
    if made.library_calls:
        console.print(f"  left to the library: {', '.join(made.library_calls)}")
    for note in made.notes:
        console.print(f"  note: {note}")
