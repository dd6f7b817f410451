"""Rows of results, made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kernel_smith.records import Budget, Environment, Interval, Options, Precision
from kernel_smith.records.bench import Arm, BenchResult, BenchRow, Place, Stamp

HERE = Place(environment=Environment(**dict.fromkeys(Environment.model_fields, "here")))


def interval(value: float, half_width: float = 0.0) -> Interval:
    return Interval(value=value, low=value * (1 - half_width), high=value * (1 + half_width))


def row(
    problem: str, speedup: float | None = None, half_width: float = 0.0, **more: Any
) -> BenchRow:
    """A solved problem if there is a speedup, over eager alone; else one that nobody solved."""
    speedups = {} if speedup is None else {"eager": interval(speedup, half_width)}
    fields: dict[str, Any] = {
        "arm": "islands",
        "suite": "made",
        "level": "level1",
        "category": "softmax",
        "precision": Precision.STRICT,
        "task_hash": f"hash of {problem}",
        "status": "incorrect" if speedup is None else "correct",
        "speedups": speedups,
    }
    return BenchRow(problem=problem, **(fields | more))


def result(rows: list[BenchRow], places: tuple[Place, ...] = (HERE,), **stamp: Any) -> BenchResult:
    fields: dict[str, Any] = {
        "places": places,
        "kernel_smith": "0",
        "suites": {"made": None},
        "refused": "count",
        "seed": 0,
        "at_once": 1,
        "lanes": 1,
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    arms = tuple(
        Arm(
            name=name,
            method=name,
            backend="cpp",
            proposers={"model": 1.0},
            budget=Budget(rounds=4),
            options=Options(),
            confirmation=Options(),
        )
        for name in dict.fromkeys(row.arm for row in rows)
    )
    return BenchResult(stamp=Stamp(**(fields | stamp)), arms=arms, rows=tuple(rows))
