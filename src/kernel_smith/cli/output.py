"""What commands print: results on stdout, everything else on stderr.

Where output is piped, lines are whole, so that other programs can take them apart. At a terminal
they are broken between words, as wide as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from kernel_smith.errors import BadInput

if TYPE_CHECKING:
    from rich.table import Table

_LEAST_WORDS = 30  # columns that are left to the last cell of a row
_LABEL = re.compile(r"\S+ {2,}")
_COMMAND = "kernel-smith "
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tabs and ends of lines


class _Output(Console):
    """A console that prints texts as they are: control characters, which others may have put into a
    name, are shown as what they are, and neither brackets nor colons mean anything. Where it is a
    terminal, it breaks lines between words."""

    def __init__(self, **options: Any) -> None:
        if os.environ.get("COLUMNS") == "0":  # that is, unknown: rich would print nothing at all
            options = {"width": shutil.get_terminal_size().columns, **options}
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        shown = [self._shown(each) if isinstance(each, str) else each for each in objects]
        words = all(isinstance(each, str) for each in objects)
        super().print(*shown, soft_wrap=words if soft_wrap is None else soft_wrap, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything, a panel or a cell of a table, without control characters but rich's."""
        for part in super().render(renderable, options):
            yield part if part.control else part._replace(text=without_control(part.text))

    def _shown(self, words: str) -> str:
        plain = without_control(words)
        return broken(plain, self.width) if self.is_terminal else plain


def without_control(text: str) -> str:
    """Write control characters as escapes: a terminal would obey them."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def broken(text: str, width: int) -> str:
    """Break lines that are longer than this between words; what follows is set in.

    Commands stay on their line, to be copied.
    """
    return "\n".join(_broken_line(line, width) for line in text.split("\n"))


def _broken_line(line: str, width: int) -> str:
    if len(line) <= width or _COMMAND in line:
        return line
    words = line.lstrip()
    begin = len(line) - len(words)
    label = _LABEL.match(words)
    below = begin + label.end() if label and 2 * label.end() < width else 2 + 2 * begin
    return textwrap.fill(
        words,
        width,
        initial_indent=" " * begin,
        subsequent_indent=" " * below,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


errors = _Output(stderr=True)
console = _Output()


def print_json(value: dict[str, Any]) -> None:
    """One object on stdout, for machines."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_text(text: str) -> None:
    """A whole text on stdout, to the letter, except at a terminal, which would obey some."""
    sys.stdout.write(without_control(text) if sys.stdout.isatty() else text)


def print_error(what: str, hint: str | None = None) -> None:
    print_titled("error:", "bold red", what, errors)
    if hint:
        print_titled("hint:", "bold cyan", hint, errors)


def print_titled(title: str, style: str, words: str, where: Console) -> None:
    text = without_control(f"{title} {words}")
    shown = Text(broken(text, where.width) if where.is_terminal else text)
    shown.stylize(style, 0, len(title))
    where.print(shown, soft_wrap=True)


def print_next(command: str, why: str) -> None:
    """The command that usually follows, on one line, to be copied."""
    plain, because = without_control(command), without_control(why)
    shown = Text.assemble(("next:", "dim"), f" {plain}  ", (f"# {because}", "dim"))
    console.print(shown, soft_wrap=True)


def command_of(*words: str, store: Path | None) -> str:
    """Return a command about a run, with the store that this one was given."""
    where = ["--store", str(store)] if store else []
    return shlex.join(["kernel-smith", *words, *where])


@contextlib.contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Tell what is going on: a live line on a terminal, plain lines elsewhere."""
    if quiet:
        yield lambda what: None
    elif errors.is_terminal:
        with errors.status("starting") as status:
            yield lambda what: status.update(Text(what))
    else:
        yield lambda what: errors.print(f"... {what}")


@contextlib.contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Give a place to write to, which becomes the file when all went well, and else is removed.

    What is there and is no file, such as a pipe or /dev/null, is written to as it is: it would be
    replaced by a file, for everybody.
    """
    if not path.name:  # as of `.`
        raise unwritable(path, "Is a directory")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            yield path
            return
        part = path.with_name(f"{path.name}.{os.getpid()}.part")  # others may write the same file
        with _removed_in_the_end(part):
            yield part
            part.replace(path)
    except OSError as error:
        raise unwritable(path, error.strerror or str(error)) from None


@contextlib.contextmanager
def _removed_in_the_end(part: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def unwritable(path: Path, why: str, kind: str = "file") -> BadInput:
    """Return the error that says why a file, or a folder, cannot be written."""
    hint = f"choose a {kind} with -o {kind.upper()}"
    return BadInput(f"{path}: cannot be written ({why})", hint=hint)


@contextlib.contextmanager
def written(path: Path) -> Iterator[Callable[[str], Any]]:
    """A text file that appears when it is complete, and not at all if something goes wrong."""
    with complete_file(path) as part, part.open("w", encoding="utf-8") as file:
        yield file.write


def print_columns(rows: Sequence[Sequence[str]], spare: Sequence[str] = ()) -> None:
    """Print a table, its heads first: where it is piped, a line for each row.

    At a terminal the last cell of a row is broken between words. A narrow one has no room for the
    columns `spare`, the first of which are left out first; where that does not help, there are
    lines again, since a name that is cut off is of no use.
    """
    rows = [[without_control(cell) for cell in row] for row in rows]
    if console.is_terminal:
        for name in spare:
            if _fits(rows):
                break
            at = rows[0].index(name)
            rows = [[*row[:at], *row[at + 1 :]] for row in rows]
        if _fits(rows):
            console.print(_table(rows))
            return
    widths = _widths(rows)
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.print("  ".join(cells).rstrip())


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _fits(rows: Sequence[Sequence[str]]) -> bool:
    *widths, last = _widths(rows)
    return sum(width + 2 for width in widths) + min(last, _LEAST_WORDS) <= console.width


def _table(rows: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for at, head in enumerate(rows[0], 1):
        table.add_column(head, no_wrap=at < len(rows[0]))
    for row in rows[1:]:
        table.add_row(*row)
    return table
