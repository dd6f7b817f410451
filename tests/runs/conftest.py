"""A task whose programs are numbers, and how to run it."""

from __future__ import annotations

import pytest

from kernel_smith.records import Budget, RunConfig, Task


@pytest.fixture
def task() -> Task:
    return Task(name="numbers", source="class Model: pass")


@pytest.fixture
def config() -> RunConfig:
    return RunConfig(
        backend="cpp",
        proposers={"nudger": 1.0},
        budget=Budget(evaluations=40),
        islands=2,
        features=("complexity",),
        migrate_every=10,
    )
