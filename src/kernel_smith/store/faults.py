"""What can go wrong with the store's file, as errors that say what to do about it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path

from kernel_smith.errors import BadInput, UserError, why_no_file


class StoreError(UserError):
    """The store's file cannot be used as it is: full disk, locked, damaged, foreign or too new."""


_COPY = "copy the file away, then rescue what is left: sqlite3 COPY .recover | sqlite3 NEW"

# The start of SQLite's message -> what it means here, and the remedy.
_MEANINGS = (
    (
        "database or disk is full",
        "the disk is full; the last event was not stored",
        "make room, then resume the run; every event before is safe",
    ),
    (
        "disk I/O error",
        "the disk failed, or a limit on file sizes was reached; the last event was not stored",
        "look at `df` and `ulimit -f`, then resume the run; every event before is safe",
    ),
    (
        "database is locked",
        "another process has been writing to it for too long",
        "wait for that process, or end it; `fuser FILE` names it",
    ),
    (
        "attempt to write a readonly database",
        "the file is read-only",
        "make the file and its folder writable, or set KERNEL_SMITH_STORE to another file",
    ),
    (
        "unable to open database file",
        "the file cannot be opened, or its folder cannot be written",
        "make the folder writable, or set KERNEL_SMITH_STORE to another file",
    ),
    (
        "file is not a database",
        "not a run store, or its beginning was overwritten",
        "set KERNEL_SMITH_STORE to the file of a run",
    ),
    ("database disk image is malformed", "the file is damaged", _COPY),
    ("malformed database schema", "the file is damaged", _COPY),
)


def explain(error: Exception, path: Path) -> StoreError:
    text = str(error)
    for beginning, what, hint in _MEANINGS:
        if text.startswith(beginning):
            return StoreError(f"{path}: {what}", hint=hint.replace("FILE", str(path)))
    return StoreError(f"{path}: {text}", hint=_COPY)


def refuse_no_file(path: Path) -> None:
    """Refuse a folder, such as `.`, in place of a file: what is kept beside it would be strewn
    around the folder. Refuse a device as well: a file would take its place."""
    if os.path.exists(path) and not os.path.isfile(path):
        place = path if os.path.isdir(path) else Path()
        raise BadInput(
            f"{path}: {why_no_file(path)}, expected a file",
            hint=f"name a file, such as {place / 'FILE'}",
        )


def unreadable(path: Path, where: str) -> StoreError:
    what = f"{path}: {where} cannot be read: damaged, or written by a newer kernel-smith"
    return StoreError(
        what, hint=f"pip install --upgrade kernel-smith; if that does not help, {_COPY}"
    )


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the decompressor raise into a `StoreError`."""
    try:
        yield
    except zlib.error as error:
        raise unreadable(path, f"a text ({error})") from error
    except sqlite3.Error as error:
        raise explain(error, path) from error
