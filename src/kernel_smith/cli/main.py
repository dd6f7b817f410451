"""`kernel-smith`: joins the commands, and turns errors into messages and exit codes.

`exit_codes.py` lists the codes.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from typing import Any, TextIO, cast

import typer

import kernel_smith
from kernel_smith.cli import (
    bench,
    data,
    data_choices,
    data_mine,
    doctor,
    evaluate,
    knowledge,
    mcp,
    optimize,
    outside,
    profile,
    report,
    runs,
    seed,
    serve,
    ship,
    tasks,
    train,
)
from kernel_smith.cli.help_words import command_tree
from kernel_smith.cli.output import print_error
from kernel_smith.errors import (
    BadInput,
    InternalError,
    MissingPrerequisite,
    UserError,
    reason_of,
)

_INTERRUPTED = 130
_DEFECT = (
    "this is a defect of kernel-smith, not of your files; please report it with the text above and "
    "the output of `kernel-smith doctor --json`"
)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
# What the framework raises for words that it does not understand; it has no public name there.
_UsageError = cast(type[Exception], typer.BadParameter.__base__)

app = typer.Typer(
    name="kernel-smith",
    help="Make slow PyTorch operations fast, with evidence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing the renderer would take longer than everything else
)
app.command("optimize")(optimize.optimize)
app.command("resume")(optimize.resume)
app.command("ask")(outside.ask)
app.command("tell")(outside.tell)
app.command("report")(report.report)
app.command("dashboard")(report.dashboard)
app.command("evaluate")(evaluate.evaluate)
app.command("seed")(seed.seed)
app.command("profile")(profile.profile)
app.command("doctor")(doctor.doctor)
app.command("knowledge")(knowledge.knowledge)
app.command("mcp")(mcp.mcp)
app.add_typer(ship.app, name="ship")
app.add_typer(tasks.app, name="tasks")
app.add_typer(runs.app, name="runs")
app.add_typer(bench.app, name="bench")
app.add_typer(serve.app, name="serve")
data.app.command("choices")(data_choices.choices)
data.app.command("mine")(data_mine.mine)
app.add_typer(data.app, name="data")
app.add_typer(train.app, name="train")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"kernel-smith {kernel_smith.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of every command."""


def _explain(error: Any) -> None:
    """A command line that is not understood, told as any other bad input."""
    if "Help" in type(error).__name__:  # a group of commands without a command
        error.show()
        return
    command = error.ctx.command_path if error.ctx else "kernel-smith"
    print_error(error.format_message(), f"{command} --help")


def _prepare_output() -> None:
    """Print ? for characters that a locale lacks, such as the bars of a curve in Latin 1.

    What was closed by whoever started this leads nowhere: otherwise the next file that is opened
    would be taken for it.
    """
    for closed in (number for number in range(3) if not _is_open(number)):
        os.dup2(os.open(os.devnull, os.O_RDWR), closed)
    stream: TextIO | None = sys.stdout
    if stream is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _write_what_is_left() -> None:
    """Write buffered output while what goes wrong can still be told. Who reads no more is left."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    _prepare_output()
    try:
        code = command_tree(app)(prog_name="kernel-smith", standalone_mode=False)
        if code == _INTERRUPTED:  # what newer versions of the framework make of Ctrl-C
            raise KeyboardInterrupt
        _write_what_is_left()
        sys.exit(code if isinstance(code, int) else 0)
    except _UsageError as error:
        _explain(error)
        sys.exit(2)
    except UserError as error:
        print_error(error.what, error.hint)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):  # older ones raise `Abort`
        print_error("interrupted", "run the same command again; finished work is cached")
        sys.exit(_INTERRUPTED)
    except Exception as error:
        sys.exit(_of_the_unexpected(error))


def _of_the_unexpected(error: Exception) -> int:
    """Tell of what nobody foresaw, and return the exit code."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f"{error.filename}: " if error.filename else ""
        print_error(f"{where}no space left to write to", "make room, then run the command again")
        return MissingPrerequisite.exit_code
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        print_error(f"{error.filename}: longer than a file's name can be", "choose a shorter name")
        return BadInput.exit_code
    if isinstance(error, OSError) and error.errno in _NOT_ALLOWED and error.filename:
        what = f"{error.filename}: {reason_of(error)}"
        print_error(what, "have its owner give you permission, or name another place")
        return BadInput.exit_code
    if isinstance(error, InternalError):
        print_error(f"internal: {error}", error.hint or _DEFECT)
    else:
        traceback.print_exc()
        print_error(f"internal: {type(error).__name__}: {error}", _DEFECT)
    return InternalError.exit_code
