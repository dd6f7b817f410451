"""A table of judged options: a file of lines, each a program to be changed or a change of one.

Lines are appended and synced one by one, so that whoever is killed has lost nothing but the change
that was being judged. A last line that was cut short is written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from kernel_smith.errors import BadInput
from kernel_smith.proposers.chooser.options import Menu, menu_at
from kernel_smith.proposers.mutator.edit import Machine
from kernel_smith.records import Candidate
from kernel_smith.training.choices.rows import Judged, Parent

_LINE: TypeAdapter[Parent | Judged] = TypeAdapter(
    Annotated[Parent | Judged, Field(discriminator="kind")]
)


@dataclass
class State:
    """A parent with the changes that were judged, by the hash of what came of them."""

    parent: Parent
    judged: dict[str, Judged] = field(default_factory=dict)

    def menu(self) -> Menu:
        """Return all that could be chosen here."""
        candidate = Candidate(source=self.parent.source, backend=self.parent.backend)
        return menu_at(candidate, Machine(cores=self.parent.cores))


class Table:
    """Lines of a file, by parent. Two machines, or two tasks, have two files or two parents."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.states: dict[tuple[str, str], State] = {}
        self._size = 0
        if path.exists():
            self._read(path.read_bytes())

    def append(self, row: Parent | Judged) -> None:
        """Keep a line, on the disk before this returns."""
        with open(self.path, "r+b" if self.path.exists() else "x+b") as file:
            file.seek(self._size)
            file.truncate()
            file.write(row.model_dump_json(exclude_none=True).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._size = file.tell()
        self._take(row)

    def _read(self, text: bytes) -> None:
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                return
            try:
                self._take(_LINE.validate_json(line))
            except (ValidationError, KeyError) as error:
                raise BadInput(
                    f"{self.path}: line {number} is no row of a table of choices ({error})",
                    hint="name a file that `benchmarks/choices_table.py` has written, or a new one",
                ) from None
            self._size += len(line)

    def _take(self, row: Parent | Judged) -> None:
        if isinstance(row, Parent):
            self.states.setdefault((row.task, row.program), State(row))
        else:
            self.states[row.task, row.parent].judged[row.program] = row


def rows_of(states: Iterable[State]) -> int:
    """Count the judged changes."""
    return sum(len(state.judged) for state in states)
