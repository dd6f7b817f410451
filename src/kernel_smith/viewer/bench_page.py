"""Benchmark results as pages: what `bench report` scores, and the winning programs beside it."""

from __future__ import annotations

import itertools
import os
import shlex
from pathlib import Path

from pydantic import ValidationError

from kernel_smith.bench.compare import Comparison, Side, compare
from kernel_smith.bench.folder import read_result, result_folder, winner_path
from kernel_smith.bench.report import describe_place
from kernel_smith.bench.scores import boards
from kernel_smith.errors import BadInput
from kernel_smith.records import Evaluation
from kernel_smith.records.bench import BenchResult, BenchRow
from kernel_smith.records.prose import render
from kernel_smith.viewer.records import PORTION, BenchPage, Winner, WinnerPortion


class ResultBook:
    """Results on disk, by the names that the user gave their folders."""

    def __init__(self, paths: list[Path]) -> None:
        self._folders = {str(result_folder(path)): result_folder(path) for path in paths}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._folders)

    def page(self, name: str) -> BenchPage:
        folder = self._folder(name)
        result = read_result(folder)
        return BenchPage(
            id=name,
            stamp=result.stamp,
            places=tuple(describe_place(place) for place in result.stamp.places),
            arms=result.arms,
            rows=result.rows,
            boards=tuple(boards(result.rows, result.stamp.refused)),
            comparisons=tuple(_comparisons(result)),
            verify=shlex.join(["kernel-smith", "bench", "verify", name]),
        )

    def portion(self, name: str, number: int) -> WinnerPortion:
        """Return the winners of `PORTION` rows, as far as their files are there."""
        folder = self._folder(name)
        rows = read_result(folder).rows
        chosen = range(number * PORTION, min(len(rows), (number + 1) * PORTION))
        found = {at: _winner(folder, rows[at]) for at in chosen if rows[at].winner is not None}
        return WinnerPortion(winners={at: each for at, each in found.items() if each is not None})

    def _folder(self, name: str) -> Path:
        if name not in self._folders:
            raise BadInput(
                f"no result is called {name!r}", hint=f"there are: {', '.join(self.names)}"
            )
        return self._folders[name]


def is_result(path: Path) -> bool:
    """Does a folder, or the file in it, hold a benchmark result?"""
    # Unlike Path.is_file, this answers False to names that no file can have.
    return os.path.isfile(result_folder(path) / "result.json")


def _comparisons(result: BenchResult) -> list[Comparison]:
    sides = [
        Side(arm.name, [row for row in result.rows if row.arm == arm.name], result.stamp.places)
        for arm in result.arms
    ]
    return [
        each
        for first, second in itertools.combinations(sides, 2)
        for each in compare(first, second)
    ]


def _winner(folder: Path, row: BenchRow) -> Winner | None:
    path = winner_path(folder, row)
    try:
        source = path.read_text(encoding="utf-8")
        text = path.with_suffix(".json").read_text(encoding="utf-8")
        return Winner(source=source, words=render(Evaluation.model_validate_json(text)))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None  # the result says enough without it
