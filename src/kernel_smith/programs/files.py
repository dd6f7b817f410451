"""A candidate's file."""

from __future__ import annotations

from pathlib import Path

from kernel_smith.errors import BadInput, reason_of
from kernel_smith.records import MAX_SOURCE, Candidate

_EXPECTED = "expected a Python file with class ModelNew"
_HINT = "see docs/candidate-format.md for what a candidate looks like"


def read_candidate(path: Path, backend: str) -> Candidate:
    """Read a program for a backend. Raises `BadInput` if the file cannot be one."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            source = file.read(MAX_SOURCE + 1)  # a file of weights may have been meant by mistake
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: cannot be read ({reason_of(error)}), {_EXPECTED}", hint=_HINT
        ) from None
    return make_candidate(source, backend, path.name)


def make_candidate(source: str, backend: str, name: str) -> Candidate:
    """Return a program from its text. Raises `BadInput` if it is too long."""
    if len(source) > MAX_SOURCE:
        what = f"{name}: too long, {_EXPECTED} of at most {MAX_SOURCE} characters"
        raise BadInput(what, hint=_HINT)
    return Candidate(backend=backend, source=source, name=name)
