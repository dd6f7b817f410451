"""Reading and writing a candidate's file, for every command that takes or makes one."""

from __future__ import annotations

import os
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.records import MAX_SOURCE, Candidate


def read_candidate(path: Path, backend: str) -> Candidate:
    expected = "expected a Python file with class ModelNew"
    hint = "see docs/candidate-format.md for what a candidate looks like"
    try:
        source = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise BadInput(f"{path}: cannot be read ({reason}), {expected}", hint=hint) from None
    if len(source) > MAX_SOURCE:
        what = f"{path}: {len(source)} characters, {expected} of at most {MAX_SOURCE}"
        raise BadInput(what, hint=hint)
    return Candidate(backend=backend, source=source, name=path.name)


def check_writable(path: Path) -> None:
    """Refuse at once what would fail after all of the work."""
    if path.is_dir():
        raise _unwritable(path, "Is a directory")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise _unwritable(path, "its folder is missing, or permission is")


def make_folder(path: Path) -> None:
    """For many of them."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error), "folder") from None


def write_candidate(path: Path, source: str) -> None:
    try:
        path.write_text(source, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


def _unwritable(path: Path, why: str, kind: str = "file") -> BadInput:
    hint = f"choose a {kind} with -o {kind.upper()}"
    return BadInput(f"{path}: cannot be written ({why})", hint=hint)
