"""Files of a data set: rows as JSON Lines or Parquet, written one after the other.

A folder appears when all of it is written, and not at all if something goes wrong before.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from kernel_smith.errors import BadInput, MissingPrerequisite, writing
from kernel_smith.trajectories.formats import Column, FileKind, Row

_ROWS_IN_MEMORY = 256


class RowWriter(Protocol):
    def write(self, row: Row) -> None:
        """Add a row. It may be on disk only after `close`."""

    def close(self) -> None: ...


def open_rows(path: Path, kind: FileKind, columns: Mapping[str, Column]) -> RowWriter:
    """A file for rows with these columns."""
    return ParquetRows(path, columns) if kind == "parquet" else JsonRows(path)


class JsonRows:
    """One JSON object per line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, row: Row) -> None:
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def close(self) -> None:
        self._file.close()


class ParquetRows:
    """Row groups of bounded size, so that neither writer nor reader holds the whole file."""

    def __init__(self, path: Path, columns: Mapping[str, Column]) -> None:
        self._arrow = need_parquet()
        types = [(name, _type(self._arrow, kind)) for name, kind in columns.items()]
        self._schema = self._arrow.schema(types)
        self._writer = self._arrow.parquet.ParquetWriter(path, self._schema)
        self._rows: list[Row] = []

    def write(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_IN_MEMORY:
            self._flush()

    def close(self) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            table = self._arrow.Table.from_pylist(self._rows, schema=self._schema)
            self._writer.write_table(table)
            self._rows.clear()


def need_parquet() -> Any:
    """The library that writes Parquet files. Raises `MissingPrerequisite` where there is none."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise MissingPrerequisite(
            "Parquet files need pyarrow, which is not installed",
            hint="pip install 'kernel-smith[data]', or write JSON Lines: --files jsonl",
        ) from None


def _type(arrow: Any, column: Column) -> Any:
    if isinstance(column, Mapping):
        return arrow.struct([(name, _type(arrow, kind)) for name, kind in column.items()])
    if column == "messages":
        return arrow.list_(_type(arrow, {"role": "text", "content": "text"}))
    names = {"text": "string", "integer": "int64", "number": "float64"}
    return getattr(arrow, names[column])()


@contextmanager
def complete_folder(folder: Path, mark: str) -> Iterator[Path]:
    """A place to write to, which becomes `folder` at the end.

    A folder that is there is replaced if it holds the file `mark`, that is, if it is an older one
    of the same kind. Another that is not empty is left alone.
    """
    folder = folder.resolve()
    _check(folder, mark)
    part, old = (
        folder.with_name(f".{folder.name}.{os.getpid()}.{suffix}") for suffix in ("part", "old")
    )
    try:
        with writing(folder, "make room, or choose another folder with -o FOLDER"):
            part.mkdir(parents=True)
            yield part
            _put(part, folder, old)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _check(folder: Path, mark: str) -> None:
    if folder == Path.cwd():
        what = f"{folder}: is the current folder, which cannot be replaced while you are in it"
        raise BadInput(what, hint="choose another folder with -o FOLDER")
    if not folder.exists() or (folder / mark).is_file():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise BadInput(
            f"{folder}: is there already, and is not a data set",
            hint="choose another folder with -o FOLDER",
        )


def _put(part: Path, folder: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    try:
        part.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
