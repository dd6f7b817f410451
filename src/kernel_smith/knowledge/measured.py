"""What moves have gained, as `benchmarks/moves.py` computes it from stores that are checked in."""

from __future__ import annotations

from functools import cache
from importlib import resources

from pydantic import Field

from kernel_smith.knowledge.guides import Guide, Section
from kernel_smith.records import Record

_SERIES_SHOWN = 4
_MOVES_SHOWN = 12


class Move(Record):
    """One kind of change, over all the times that it was tried in recorded runs."""

    name: str
    tried: int
    faster: int = Field(description="of them, those that were significantly faster than the parent")
    slower: int = Field(description="and those that were significantly slower")
    gain: float | None = Field(
        description="the geometric mean of the faster ones' lower ends; null: there are none"
    )


class Point(Record):
    """One program of a series."""

    change: str
    speed: float = Field(description="times eager")


class Series(Record):
    """Programs that a coding agent wrote one after the other, each as a change of the best."""

    task: str
    family: str
    programs: tuple[Point, ...]
    eager: tuple[float, float] = Field(description="the winner over eager: 95% interval")
    compile: tuple[float, float] | None = Field(description="and over torch.compile")


class Measured(Record):
    """All that was measured for one backend on one kind of machine."""

    backend: str
    hardware: str = Field(description="a word of the machine's description")
    machine: str = Field(description="what it was measured on, in words")
    moves: tuple[Move, ...] = ()
    series: tuple[Series, ...] = ()


class AllMeasured(Record):
    machines: tuple[Measured, ...]


@cache
def all_measured() -> tuple[Measured, ...]:
    text = (resources.files("kernel_smith.knowledge") / "measured.json").read_text("utf-8")
    return AllMeasured.model_validate_json(text).machines


def figures_about(guide: Guide) -> tuple[Section, ...]:
    """Return what was measured for a guide's backend, on its device if it is about one."""
    return tuple(
        section
        for measured in all_measured()
        if measured.backend == guide.backend and guide.hardware in (None, measured.hardware)
        for section in sections_of(measured)
    )


def sections_of(measured: Measured, family: str | None = None) -> tuple[Section, ...]:
    """Return the figures as sections; with a family, the series of such tasks alone."""
    found = []
    if measured.moves:
        found.append(_section("Measured: which edits paid", measured, _moves(measured.moves)))
    series = [each for each in measured.series if family in (None, each.family)]
    if series:
        lines = "\n".join(map(_line, series[:_SERIES_SHOWN] if family else series))
        found.append(_section("Measured: how kernels got faster", measured, lines))
    return tuple(found)


def _section(title: str, measured: Measured, text: str) -> Section:
    where = f"On {measured.machine}."
    return Section(topic=measured.backend, title=title, text=f"{where}\n\n{text}")


def _moves(moves: tuple[Move, ...]) -> str:
    """The likeliest to pay first."""
    best = sorted(moves, key=lambda move: move.faster / move.tried, reverse=True)[:_MOVES_SHOWN]
    return "\n".join(
        f"- {move.name}: {move.faster} of {move.tried} tries were significantly faster"
        + (f", by {move.gain:.2f} times or more on average" if move.gain else "")
        + f"; slower: {move.slower}"
        for move in best
    )


def _line(series: Series) -> str:
    steps = ", ".join(f"{each.change} {each.speed:.2f}" for each in series.programs)
    low, high = series.eager
    beside = ""
    if series.compile is not None:
        beside = f", {series.compile[0]:.2f} to {series.compile[1]:.2f} times torch.compile"
    return (
        f"- {series.task} ({series.family}), times eager: {steps}. "
        f"The winner: {low:.2f} to {high:.2f} times eager{beside}."
    )
