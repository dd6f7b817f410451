"""A table of options: a file of lines, each a program to be changed, a change that was judged, or a
sweep of changes.

Lines are appended and synced one by one, so that whoever is killed has lost nothing but what was
under way. A last line that was cut short is written over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from kernel_smith.errors import BadInput
from kernel_smith.proposers.chooser.options import Menu, menu_at
from kernel_smith.proposers.mutator.edit import Machine
from kernel_smith.proposers.mutator.registry import EDITS
from kernel_smith.records import Candidate
from kernel_smith.training.choices.rows import Judged, Parent, SweptChanges

_Line = Parent | Judged | SweptChanges
_MADE = frozenset(edit.name for edit in EDITS)
_LINE: TypeAdapter[_Line] = TypeAdapter(Annotated[_Line, Field(discriminator="kind")])


@dataclass
class State:
    """A parent with the changes that were judged or swept, by the hash of what came of them."""

    parent: Parent
    judged: dict[str, Judged] = field(default_factory=dict)
    swept: dict[str, Judged] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, Judged]:
        """Those by edits that are still made. What the judge says counts for more than what a
        sweep showed."""
        rows = self.swept | self.judged
        return {program: row for program, row in rows.items() if row.edit in _MADE}

    @property
    def candidate(self) -> Candidate:
        """The parent as a program."""
        return Candidate(source=self.parent.source, backend=self.parent.backend)

    def menu(self) -> Menu:
        """Return all that could be chosen here."""
        return menu_at(self.candidate, Machine(cores=self.parent.cores))


class Table:
    """Lines of a file, by parent; several threads may append.

    Two machines have two files, and two tasks two parents, even of one text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.states: dict[tuple[str, str], State] = {}
        self._size = 0
        self._lock = threading.Lock()
        if path.exists():
            self._read(path.read_bytes())

    def append(self, row: _Line) -> None:
        """Keep a line, on the disk before this returns. Raises `BadInput` for a program that was
        timed on another machine than those that are there."""
        with self._lock:
            if isinstance(row, Parent):
                self._demand_same_machine(row)
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

    def _take(self, row: _Line) -> None:
        if isinstance(row, Parent):
            self.states.setdefault((row.task, row.program), State(row))
            return
        state = self.states[row.task, row.parent]
        if isinstance(row, Judged):
            state.judged[row.program] = row
        else:
            state.swept |= {each.program: each for each in row.rows()}

    def _demand_same_machine(self, row: Parent) -> None:
        known = next((state.parent for state in self.states.values()), row)
        theirs, ours = ((each.machine, each.processor, each.cores) for each in (known, row))
        if theirs != ours:
            raise BadInput(
                f"{self.path}: its programs were timed on {_told(known)}, and this is {_told(row)}",
                hint="name another file: gains on two machines are two tables",
            )


def rows_of(states: Iterable[State]) -> int:
    """Count the changes of which it is known what became of them."""
    return sum(len(state.known) for state in states)


def _told(parent: Parent) -> str:
    return f"{parent.machine} {parent.processor}, {parent.cores or 'all'} timed"
