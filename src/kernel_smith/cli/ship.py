"""`kernel-smith ship`: from the winner of a run to what a maintainer merges."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from kernel_smith.cli.output import command_of, console, print_json, print_next
from kernel_smith.errors import BadInput


def ship(
    run: Annotated[str, typer.Argument(help="A run's name, its beginning, or `latest`.")],
    to: Annotated[Path, typer.Option(help="The folder to write to.")],
    name: Annotated[
        str | None, typer.Option(help="The package's name; default: the task's.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="The file that runs are kept in.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write the best kernel of a run as a package that runs without kernel-smith.

    Beside it: its tests against the reference, a benchmark with the judge's figures, and the text
    of a pull request. Exits with 0 if the kernel was confirmed to be faster, and with 1 if not.
    """
    from kernel_smith.runs.run import fold
    from kernel_smith.shipping.found import Optimized
    from kernel_smith.shipping.parcel import pack
    from kernel_smith.store import History, Store, default_path

    with Store.open(store or default_path()) as book:
        wanted = book.find_run(run)
        state = fold(book, wanted)
        history = History.of(event for _, event in book.events(wanted))
    if state.best is None or history.best is None:
        raise BadInput(
            f"run {wanted} has found no kernel that could be timed",
            hint=command_of("runs", "show", wanted, store=store),
        )
    found = Optimized.of(state, history.ended or "still under way")
    package = name or "fast_" + re.sub(r"\W", "_", found.task.name)
    written = pack(found, history.lineage(history.best), to, package)
    if json:
        shown = {"run": wanted, "confirmed": found.confirmed, "written": [str(p) for p in written]}
        print_json(shown)
    else:
        console.print(f"{found!r}", markup=False)
        for path in written:
            console.print(f"  {path}", markup=False)
        print_next(f"cd {to} && python -m pytest tests/test_{package}.py", "does it work there?")
    raise typer.Exit(0 if found.confirmed else 1)
