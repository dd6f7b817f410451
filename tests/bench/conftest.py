"""Problems of a few lines, a scripted model, and a folder for the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench_makers import PROBLEM, Bench

from kernel_smith.bench.suites import Problem, Selection, find_problems
from kernel_smith.testing.openai_server import OpenAIServer, Reply


@pytest.fixture
def problems(tmp_path: Path) -> list[Problem]:
    folder = tmp_path / "suite" / "level1"
    folder.mkdir(parents=True)
    for number in (1, 2, 3):
        (folder / f"{number}_p.py").write_text(PROBLEM.format(number=number))
    return find_problems([str(tmp_path / "suite")], Selection())


Ask = Callable[[list[Reply]], dict[str, Any]]


@pytest.fixture
def model() -> Iterator[Ask]:
    """Settings of a model that gives these answers, the last one again and again."""
    servers: list[OpenAIServer] = []

    def serve(replies: list[Reply]) -> dict[str, Any]:
        server = OpenAIServer(replies)
        servers.append(server)
        server.__enter__()
        return {"models": [{"name": "m", "base_url": server.base_url, "retries": 0}]}

    yield serve
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def bench(tmp_path: Path, problems: list[Problem]) -> Bench:
    return Bench(tmp_path / "result", problems)
