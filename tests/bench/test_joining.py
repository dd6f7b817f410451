"""A benchmark done in parts: the row that was finished last counts, better or worse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench_rows import HERE, result, row

from kernel_smith.bench.joining import Joined
from kernel_smith.errors import BadInput
from kernel_smith.records import Precision
from kernel_smith.records.bench import BenchResult


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def joined(*parts: BenchResult) -> BenchResult:
    return Joined({Path(str(n)): part for n, part in enumerate(parts)}).result


def test_the_last_row_that_was_finished_counts() -> None:
    first = [row("a", 3.0), row("b", 2.0), row("c", status="unfinished"), row("d", 1.0)]
    second = [row("a", 1.5), row("b", status="unfinished"), row("c", 4.0)]
    later, earlier = (result(rows, created_at=day(n)) for n, rows in ((2, second), (1, first)))
    found = joined(later, earlier).rows
    assert [each.problem for each in found] == ["a", "b", "c", "d"]
    assert [each.speedups["eager"].value for each in found] == [1.5, 2.0, 4.0, 1.0]


def test_arms_and_precisions_stay_apart() -> None:
    rows = [
        row("a", 1.0),
        row("a", 2.0, arm="greedy"),
        row("a", 3.0, precision=Precision.TF32),
    ]
    whole = joined(*(result([each], created_at=day(n + 1)) for n, each in enumerate(rows)))
    assert len(whole.rows) == 3
    assert [arm.name for arm in whole.arms] == ["islands", "greedy"]


def test_the_stamp_names_the_parts() -> None:
    other = HERE.model_copy(
        update={"environment": HERE.environment.model_copy(update={"torch": "2"})}
    )
    stamp = joined(
        result([row("a", 1.0)], created_at=day(1), commit="0123456789abcdef", modified=True),
        result([row("b", 1.0)], (other,), created_at=day(2), suites={"made": "c", "other": None}),
    ).stamp
    assert stamp.places == (HERE, other)
    assert stamp.modified
    assert stamp.suites == {"made": "c", "other": None}
    assert stamp.selection == {
        "parts": [
            "2026-01-01 00:00 UTC at commit 0123456789ab",
            "2026-01-02 00:00 UTC at commit unknown",
        ]
    }


def test_what_was_asked_in_other_ways_is_not_joined() -> None:
    one, other = result([row("a", 1.0)]), result([row("b", 1.0)])
    (arm,) = other.arms
    changed = other.model_copy(update={"arms": (arm.model_copy(update={"backend": "triton"}),)})
    with pytest.raises(BadInput, match="'islands' differs in backend"):
        joined(one, changed)
    with pytest.raises(BadInput, match="count, leave-out") as caught:
        joined(one, result([row("b", 1.0)], refused="leave-out"))
    assert "--leave-out-refused" in str(caught.value.hint)
