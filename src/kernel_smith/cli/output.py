"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from kernel_smith.errors import BadInput

errors = Console(stderr=True, highlight=False, soft_wrap=True)
console = Console(highlight=False, soft_wrap=True)


def print_json(value: dict[str, Any]) -> None:
    """One object on stdout, for machines."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_error(what: str, hint: str | None = None) -> None:
    errors.print(f"[bold red]error:[/] {escape(what)}")
    if hint:
        errors.print(f"[bold cyan]hint:[/] {escape(hint)}")


def print_next(command: str, why: str) -> None:
    """The command that usually follows."""
    console.print(f"[dim]next:[/] {escape(command)}  [dim]# {escape(why)}[/]")


def command_of(*words: str, store: Path | None) -> str:
    """A command about a run, with the store that this one was given."""
    where = ["--store", str(store)] if store else []
    return shlex.join(["kernel-smith", *words, *where])


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Tell what is going on: a live line on a terminal, plain lines elsewhere."""
    if quiet:
        yield lambda what: None
    elif errors.is_terminal:
        with errors.status("starting") as status:
            yield lambda what: status.update(what)
    else:
        yield lambda what: errors.print(f"... {what}")


@contextlib.contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Give a place to write to, which becomes the file when all went well, and else is removed."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise BadInput(
            f"{path}: cannot be written ({error.strerror})", hint="choose a file with -o FILE"
        ) from None
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def written(path: Path) -> Iterator[Callable[[str], Any]]:
    """A text file that appears when it is complete, and not at all if something goes wrong."""
    with complete_file(path) as part, part.open("w", encoding="utf-8") as file:
        yield file.write


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """A table whose lines are never broken, so that other programs can take it apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print("  ".join(cells).rstrip(), markup=False)
