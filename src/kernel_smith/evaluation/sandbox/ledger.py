"""How far a batch of calls has got: shared memory that a process writes and the judge reads.

A row per call, with a cell for the address of each result. It is zero until the call has returned.
The judge does not believe it: what is entered must be there, and what is not must not have begun.

It is read while the process stands still. A processor that shows writes in another order than they
were made in, as Arm's may, has shown all of them by then.
"""

from __future__ import annotations

from typing import Any

import torch

_NOWHERE = 1  # stands for the address of a result without elements


class Ledger:
    def __init__(self, cells: torch.Tensor) -> None:
        """`cells`: a matrix of integers, a row per call."""
        self._rows = cells
        self._width = cells.shape[1]
        self._cells = cells.view(-1).numpy().data

    def enter(self, call: int, place: Any) -> None:
        """Note that a call has returned. The clock is running.

        `place`: an address, or an address and strides for each result.
        """
        if type(place) is int:
            self._cells[call * self._width] = place or _NOWHERE
            return
        first = call * self._width
        for cell, (address, _) in zip(range(first, first + self._width), place, strict=False):
            self._cells[cell] = address or _NOWHERE

    def clear(self) -> None:
        self._rows.zero_()

    def entered(self, calls: int) -> list[list[int]]:
        """The addresses of the results of all calls that have returned, one after the other."""
        rows: list[list[int]] = self._rows[:calls].tolist()
        unfinished = (number for number, row in enumerate(rows) if 0 in row)
        return rows[: next(unfinished, calls)]
