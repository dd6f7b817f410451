"""What mining has done so far, one line per class, so that it goes on where it was stopped."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from kernel_smith.errors import writing
from kernel_smith.records.base import Record, VersionedRecord

LEDGER, SUMMARY = "mined.jsonl", "mined.json"
OTHER_FOLDER = "choose another folder with -o FOLDER"


class Origin(Record):
    """Where a class was found."""

    package: str
    version: str
    licence: str
    file: str
    line: int
    class_name: str

    @property
    def key(self) -> str:
        return f"{self.package} {self.version} {self.file} {self.class_name}"

    def __str__(self) -> str:
        package = " ".join(filter(None, (self.package, self.version)))
        licence = f", {self.licence}" if self.licence else ""
        return f"{package} ({self.file}:{self.line}{licence})"


class Entry(VersionedRecord):
    """What became of one class."""

    origin: Origin
    outcome: Literal["written", "refused"]
    reason: str = ""
    detail: str = ""
    stage: Literal["extract", "run", "admission", "done"]
    structure: str = ""
    task: str | None = Field(default=None, description="the file's name without its ending")
    family: str | None = None


class Summary(VersionedRecord):
    """All of a folder's entries, counted."""

    found: int
    standalone: int = Field(description="of those found: with all that they need, no duplicates")
    ran: int
    written: int
    refusals: dict[str, int]
    families: dict[str, int]
    tasks: dict[str, Origin]
    missing: tuple[str, ...] = Field(
        default=(), description="what this machine could not enforce while classes were tried out"
    )


class Ledger:
    """The entries of a folder; every new one is on the disk when `add` returns."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LEDGER
        self.entries: dict[str, Entry] = {}
        with writing(folder, OTHER_FOLDER):
            folder.mkdir(parents=True, exist_ok=True)
            self._read()
            # A last line that was cut off must not swallow the next one.
            _replace(self._path, "".join(map(_line, self.entries.values())))
            self._file = self._path.open("a", encoding="utf-8")

    def _read(self) -> None:
        if not self._path.exists():
            return
        for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                entry = Entry.model_validate_json(line)
            except ValidationError:
                continue
            self.entries[entry.origin.key] = entry

    def add(self, entry: Entry) -> None:
        self.entries[entry.origin.key] = entry
        with writing(self._path.parent, OTHER_FOLDER):
            self._file.write(_line(entry))
            self._file.flush()

    def close(self) -> None:
        self._file.close()


def _line(entry: Entry) -> str:
    return entry.model_dump_json() + "\n"


def summarise(entries: Iterable[Entry], missing: Iterable[str]) -> Summary:
    known = list(entries)
    written = [entry for entry in known if entry.task is not None]
    return Summary(
        found=len(known),
        standalone=sum(entry.stage != "extract" for entry in known),
        ran=sum(entry.stage in ("admission", "done") for entry in known),
        written=len(written),
        refusals=dict(Counter(e.reason for e in known if e.task is None).most_common()),
        families=dict(Counter(str(e.family) for e in written).most_common()),
        tasks={str(entry.task): entry.origin for entry in written},
        missing=tuple(sorted(missing)),
    )


def write_summary(folder: Path, summary: Summary) -> None:
    with writing(folder, OTHER_FOLDER):
        _replace(folder / SUMMARY, json.dumps(summary.model_dump(mode="json"), indent=2) + "\n")


def _replace(path: Path, text: str) -> None:
    """All of it or nothing."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
