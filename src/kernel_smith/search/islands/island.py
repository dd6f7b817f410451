"""One island: cells of programs that evolve apart from those of other islands."""

from __future__ import annotations

from kernel_smith.search.islands.cells import Cell, Member
from kernel_smith.search.islands.features import CellKey
from kernel_smith.search.islands.outcome import Outcome


class Island:
    """Members by cell. No program is twice in it, whatever its wording."""

    def __init__(self, elites_per_cell: int) -> None:
        self._elites_per_cell = elites_per_cell
        self._cells: dict[CellKey, Cell] = {}
        self._members: dict[str, Member] = {}
        self._programs: set[str] = set()
        self._best: Member | None = None

    @property
    def best(self) -> Member | None:
        return self._best

    @property
    def members(self) -> tuple[Member, ...]:
        """In the order of their arrival."""
        return tuple(self._members.values())

    @property
    def cells(self) -> dict[CellKey, tuple[Member, ...]]:
        """The members of every cell that has any, the best first."""
        return {key: tuple(cell.members) for key, cell in self._cells.items()}

    def has_program(self, program: str) -> bool:
        """Tell whether a member has this fingerprint."""
        return program in self._programs

    def get(self, key: str) -> Member | None:
        return self._members.get(key)

    def add(self, newcomer: Member) -> tuple[Outcome, Member | None]:
        """Return what came of it, at most `ISLAND_BEST`, and who was displaced."""
        if newcomer.program in self._programs:
            return Outcome.DUPLICATE, None
        former = self._cells.get(newcomer.cell)
        cell_best = former.best if former else None
        admission = self._cell(newcomer.cell).admit(newcomer)
        if not admission.kept:
            return Outcome.REJECTED, None
        if admission.displaced:
            self._forget(admission.displaced)
        self._members[newcomer.key] = newcomer
        self._programs.add(newcomer.program)
        if self._best is None or newcomer.rank < self._best.rank:
            self._best = newcomer
            return Outcome.ISLAND_BEST, admission.displaced
        if cell_best is None:
            return Outcome.NEW_CELL, admission.displaced
        first = newcomer.rank < cell_best.rank
        return Outcome.CELL_BEST if first else Outcome.KEPT_IN_CELL, admission.displaced

    def update(self, measured: Member) -> None:
        """New measurements of a member. They may move it, and cost it or another the place."""
        known = self._members[measured.key]
        self._members[measured.key] = measured
        if measured.cell == known.cell:
            leaving = self._cells[known.cell].replace(known, measured)
        else:
            self._leave_cell(known)
            admission = self._cell(measured.cell).admit(measured)
            leaving = admission.displaced if admission.kept else measured
        if leaving:
            self._forget(leaving)
        self._rank()

    def remove(self, key: str) -> None:
        member = self._members[key]
        self._leave_cell(member)
        self._forget(member)
        self._rank()

    def _cell(self, key: CellKey) -> Cell:
        return self._cells.setdefault(key, Cell(self._elites_per_cell))

    def _leave_cell(self, member: Member) -> None:
        cell = self._cells[member.cell]
        cell.remove(member)
        if not cell.members:
            del self._cells[member.cell]

    def _forget(self, member: Member) -> None:
        del self._members[member.key]
        self._programs.remove(member.program)

    def _rank(self) -> None:
        self._best = min(self._members.values(), key=lambda member: member.rank, default=None)
