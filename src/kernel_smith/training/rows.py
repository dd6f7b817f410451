"""The rows that a training reads: JSONL or Parquet, one file or a folder of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from kernel_smith.errors import BadInput, MissingPrerequisite

Kind = Literal["sft", "rl"]

_COLUMNS: dict[Kind, frozenset[str]] = {
    "sft": frozenset({"prompt", "completion"}),
    "rl": frozenset({"id", "prompt", "task", "backend", "parent"}),
}
_SUFFIXES = (".jsonl", ".parquet")
_CHUNK = 1 << 20


def data_files(data: Path, part: str = "train") -> list[Path]:
    """The file itself; of a folder the files whose name begins with `part`, at any depth."""
    if data.is_file():
        return [data] if part == "train" else []
    if not data.is_dir():
        hint = "make a data set with `kernel-smith data build`"
        raise BadInput(f"there is no data in {data}", hint=hint)
    return sorted(
        path for path in data.rglob(f"{part}*") if path.is_file() and path.suffix in _SUFFIXES
    )


def read_rows(files: list[Path], kind: Kind) -> list[dict[str, Any]]:
    """All rows of the kind. Files of another kind in the same folder are left alone."""
    rows: list[dict[str, Any]] = []
    for file in files:
        of_file = list(_rows(file))
        if of_file and len(files) > 1 and not _COLUMNS[kind] <= of_file[0].keys():
            continue
        for number, row in enumerate(of_file, 1):
            _check(row, kind, f"{file}:{number}")
        rows += of_file
    return rows


def need_rows(data: Path, kind: Kind) -> list[dict[str, Any]]:
    """The rows to learn from; without any there is nothing to do."""
    rows = read_rows(data_files(data), kind)
    if not rows:
        raise BadInput(
            f"{data} has no rows for {kind.upper()}",
            hint=f"`kernel-smith data build ... --format trl-{kind}` writes train.jsonl there; "
            "where every step was refused, it says by which filter",
        )
    return rows


def fingerprint(files: list[Path]) -> str:
    """Tells whether a data set is the one that a training began with."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    if file.suffix == ".parquet":
        yield from _parquet(file)
        return
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise BadInput(
                    f"{file}:{number}: not JSON: {error}", hint="write the data set anew"
                ) from None
            yield row if isinstance(row, dict) else {"row": row}


def _parquet(file: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingPrerequisite(
            f"reading {file} needs pyarrow", hint="pip install 'kernel-smith[train]'"
        ) from None
    try:
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(file).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise BadInput(f"{file} is no Parquet file: {error}", hint="write it anew") from None
    return rows


def _check(row: dict[str, Any], kind: Kind, where: str) -> None:
    missing = sorted(_COLUMNS[kind] - row.keys())
    if missing:
        other = "rl" if kind == "sft" else "sft"
        meant = f"; for its rows there is `kernel-smith train {other}`" if _is(row, other) else ""
        raise BadInput(
            f"{where}: not a row for {kind.upper()}: {', '.join(missing)} missing",
            hint=f"write the data with `kernel-smith data build --format trl-{kind}`{meant}",
        )
    if not _are_messages(row["prompt"]) or (kind == "sft" and not _are_messages(row["completion"])):
        hint = 'messages are a list of {"role": ..., "content": ...}'
        raise BadInput(f"{where}: `prompt` or `completion` holds no messages", hint=hint)


def _is(row: dict[str, Any], kind: str) -> bool:
    return any(kind == known and columns <= row.keys() for known, columns in _COLUMNS.items())


def _are_messages(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(message, dict)
            and isinstance(message.get("role"), str)
            and isinstance(message.get("content"), str)
            for message in value
        )
    )
