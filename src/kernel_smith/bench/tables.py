"""Tables as CSV: scores, problems, and curves."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kernel_smith.bench.curves import Reached, curves
from kernel_smith.records import Interval
from kernel_smith.records.bench import BenchRow, Board, Cost, Refused, Scores


def scores_csv(boards: Sequence[Board]) -> str:
    """Return a line for the average of each board, and for each of its levels and categories."""
    return _csv(line for board in boards for line in _score_lines(board))


def problems_csv(rows: Sequence[BenchRow]) -> str:
    return _csv(_problem_line(row) for row in rows)


def curves_csv(rows: Sequence[BenchRow], refused: Refused) -> str:
    return _csv((reached._asdict() for reached in curves(rows, refused)), Reached._fields)


def _score_lines(board: Board) -> Iterator[dict[str, Any]]:
    groups = [("average", "", board.average)]
    groups += [("level", name, scores) for name, scores in board.levels.items()]
    groups += [("category", name, scores) for name, scores in board.categories.items()]
    for kind, name, scores in groups:
        who = {"arm": board.arm, "precision": board.precision.value, "group": kind, "name": name}
        yield who | _figures(scores)


def _figures(scores: Scores) -> dict[str, Any]:
    line: dict[str, Any] = scores.model_dump(include={"problems", "unfit", "solved"})
    line |= _ends("correct", scores.correct)
    for p, interval in scores.fast.items():
        line |= _ends(f"fast_{p}", interval)
    line |= _ends("amsr", scores.amsr) | _ends("geometric_mean", scores.geometric_mean)
    for name, against in scores.against.items():
        line |= _ends(f"faster_than_{name}", against.faster)
        line |= _ends(f"geometric_mean_over_{name}", against.geometric_mean)
    return line | {"limit_share": scores.limit_share} | _cost(scores.cost)


def _problem_line(row: BenchRow) -> dict[str, Any]:
    shown = {"arm", "problem", "suite", "level", "category", "precision", "status", "why", "run"}
    line = row.model_dump(mode="json", include=shown | {"winner", "at_length", "limit_share"})
    for name, interval in row.speedups.items():
        line |= _ends(name, interval)
    return line | _cost(row.cost)


def _cost(cost: Cost) -> dict[str, Any]:
    return cost.model_dump()


def _ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _csv(lines: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """What one line has and another has not is left empty there."""
    known = list(lines)
    names = dict.fromkeys([*columns, *(name for line in known for name in line)])
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(known)
    return text.getvalue()
