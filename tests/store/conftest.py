"""A new store for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_events import started

from kernel_smith.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """With one run, `run-1`, that has just started."""
    with Store.open(path, create=True) as store:
        store.append("run-1", started())
        yield store
