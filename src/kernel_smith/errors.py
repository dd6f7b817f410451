"""The error model, in one place.

Three kinds of trouble exist, and each has one home:

* **A bad candidate** is data. It becomes an `Evaluation` with a stage and a named reason, and
  never an exception that leaves the evaluator.
* **Bad input or a missing prerequisite** is the user's to fix. It raises `UserError`, which
  carries what was wrong, and a hint with the exact remedy. The command line prints both and exits
  with `exit_code`; no traceback is shown.
* **A defect of ours** is any other exception. The command line reports it as internal (exit
  code 4).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path


class UserError(Exception):
    """Something the user can fix: `error: what` and `hint: remedy`."""

    exit_code = 2

    def __init__(self, what: str, *, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.add_note(f"hint: {hint}")  # for those who see a traceback


class BadInput(UserError):
    """An argument, file or setting that cannot be used as it is."""


class NotAdmitted(BadInput):
    """A task that cannot tell a right answer from a wrong one."""


class TookTooLong(BadInput):
    """An evaluation that did not end in its time, as where a reference never returns."""


class MissingPrerequisite(UserError):
    """Something this machine lacks: a compiler, a GPU, a kernel feature."""

    exit_code = 3


class NotEnoughMemory(MissingPrerequisite):
    """A task that is too large for this machine, or for its GPU."""


class Interrupted(UserError):
    """Somebody stopped a run. Nothing is lost; the hint is how to go on."""

    exit_code = 130


class InternalError(Exception):
    """The evaluator itself failed, repeatedly, for a reason that is not the candidate's.

    `hint`: what else than a defect of ours it may be.
    """

    exit_code = 4

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.hint = hint


def reason_of(error: Exception) -> str:
    """Return why a file cannot be read or written, without the path, which is told beside it."""
    if isinstance(error, UnicodeError):
        return "it is not UTF-8 text"
    return getattr(error, "strerror", None) or str(error)


@contextlib.contextmanager
def writing(path: Path, hint: str) -> Iterator[None]:
    """Tell in words that a file or folder cannot be written, or has vanished."""
    try:
        yield
    except OSError as error:
        what = f"{path}: cannot be written ({reason_of(error)})"
        raise BadInput(what, hint=hint) from None


def why_no_file(path: str | Path) -> str:
    """Return what is wrong with a name under which there is no file to be read."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return "no such file"
    except OSError as error:
        too_long = error.errno == errno.ENAMETOOLONG
        return "no such file" if too_long else f"cannot be read ({reason_of(error)})"
    return "a folder" if os.path.isdir(path) else "a pipe or a device"
