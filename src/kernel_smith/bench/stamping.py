"""A result with what stands beside every figure: versions, commits, hardware, how it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kernel_smith
from kernel_smith.bench.arms import Plan
from kernel_smith.bench.commits import commit_of, own_commit
from kernel_smith.bench.suites import Selection
from kernel_smith.records.bench import BenchResult, BenchRow, Place, Stamp


def stamped(
    rows: Sequence[BenchRow],
    plans: Sequence[Plan],
    places: tuple[Place, ...],
    suites: Sequence[str],
    selection: Selection,
    **asked: Any,
) -> BenchResult:
    """Return the result of a benchmark. `asked`: the other fields of its `Stamp`."""
    commit, modified = own_commit()
    return BenchResult(
        stamp=Stamp(
            places=places,
            kernel_smith=kernel_smith.__version__,
            commit=commit,
            modified=modified,
            created_at=datetime.now(UTC),
            suites={word: commit_of(Path(word)) for word in suites},
            # As it is when it is read again: JSON knows no tuples.
            selection={n: [*v] if isinstance(v, tuple) else v for n, v in vars(selection).items()},
            **asked,
        ),
        arms=tuple(plan.describe() for plan in plans),
        rows=tuple(rows),
    )
