"""Reading a candidate's file, for every command that takes one."""

from __future__ import annotations

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
