"""What adding a program to the archive did, as a value that can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kernel_smith.records import Elite
from kernel_smith.search.islands.features import CellKey


class Outcome(IntEnum):
    """From nothing to the best that can happen: `outcome >= Outcome.CELL_BEST`."""

    REJECTED = 0
    """It failed, or its cell is full of programs that are not certainly worse."""
    DUPLICATE = 1
    """The same program, up to its wording, is in the island."""
    KEPT_IN_CELL = 2
    NEW_CELL = 3
    CELL_BEST = 4
    ISLAND_BEST = 5
    RUN_BEST = 6

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Added:
    """The result of one `add`."""

    outcome: Outcome
    island: int
    cell: CellKey | None = None
    """None if the program earned no place in any cell."""
    displaced: Elite | None = None

    @property
    def kept(self) -> bool:
        return self.outcome > Outcome.DUPLICATE
