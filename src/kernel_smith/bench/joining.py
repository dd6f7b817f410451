"""Several results as one, for a benchmark that was done in parts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_smith.bench.folder import winner_path
from kernel_smith.errors import BadInput
from kernel_smith.records.bench import Arm, BenchResult, BenchRow, Place, Stamp

_SHORT = 12  # characters of a commit


class Joined:
    """Takes of each arm, problem and precision the row that was finished last, whatever it says.

    A better row does not win: that would choose among measurements.
    """

    def __init__(self, parts: Mapping[Path, BenchResult]) -> None:
        self._parts = sorted(parts.items(), key=lambda part: part[1].stamp.created_at)
        self._rows: dict[tuple[str, str, str], tuple[Path, BenchRow]] = {}
        for folder, result in self._parts:
            for row in result.rows:
                key = (row.arm, *row.key)
                if row.status != "unfinished" or key not in self._rows:
                    self._rows[key] = folder, row

    @property
    def result(self) -> BenchResult:
        arms: dict[str, Arm] = {}
        for folder, result in self._parts:
            for arm in result.arms:
                if (known := arms.setdefault(arm.name, arm)) != arm:
                    raise _other_arm(folder, known, arm)
        rows = sorted((row for _, row in self._rows.values()), key=lambda row: row.arm)
        return BenchResult(stamp=self._stamp(), arms=tuple(arms.values()), rows=tuple(rows))

    def copy_winners(self, target: Path) -> None:
        """Copy the winning programs, and what the judge said of them."""
        for folder, row in self._rows.values():
            source, copy = winner_path(folder, row), winner_path(target, row)
            for suffix in (".py", ".json"):
                if source.with_suffix(suffix).exists():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source.with_suffix(suffix), copy.with_suffix(suffix))

    def _stamp(self) -> Stamp:
        stamps = [result.stamp for _, result in self._parts]
        if len(ways := {stamp.refused for stamp in stamps}) > 1:
            raise BadInput(
                f"the results count problems that cannot be judged in different ways: "
                f"{', '.join(sorted(ways))}",
                hint="run all parts with --leave-out-refused, or all without",
            )
        places: dict[str, Place] = {
            place.model_dump_json(): place for stamp in stamps for place in stamp.places
        }
        update: dict[str, Any] = {
            "places": tuple(places.values()),
            "modified": any(stamp.modified for stamp in stamps),
            "suites": {k: v for stamp in stamps for k, v in stamp.suites.items()},
            "selection": {"parts": [_described(stamp) for stamp in stamps]},
        }
        return stamps[-1].model_copy(update=update)


def _described(stamp: Stamp) -> str:
    commit = (stamp.commit or "unknown")[:_SHORT]
    return f"{stamp.created_at:%Y-%m-%d %H:%M} UTC at commit {commit}"


def _other_arm(folder: Path, known: Arm, other: Arm) -> BadInput:
    one, two = known.model_dump(), other.model_dump()
    odd = sorted(name for name in one if one[name] != two[name])
    return BadInput(
        f"{folder}: its arm {known.name!r} differs in {', '.join(odd)} from that of the others",
        hint="join parts that were asked in the same way; `bench report A B` shows others together",
    )
