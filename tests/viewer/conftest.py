"""One made-up store, one benchmark result and one browser for all tests of pages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from viewer_samples import RUN, candidate, evaluation, fill

from kernel_smith.bench.folder import winner_path, write_result
from kernel_smith.cli.task_words import words_of
from kernel_smith.records.bench import CaughtProgram, CurvePoint
from kernel_smith.store import Store
from kernel_smith.testing.browser import Browser, find_browser
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.report import write_report

sys.path.append(str(Path(__file__).parent.parent / "bench"))
OTHER = "scale-20260103-030405-0001"


@pytest.fixture(scope="session")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("viewer") / "runs.sqlite"
    fill(path, RUN, OTHER)
    return path


@pytest.fixture(scope="session")
def result_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arms on three problems; winners of one of them."""
    from bench_rows import result, row

    from kernel_smith.records import Reason

    caught = CaughtProgram(program="c" * 64, reason=Reason.WRONG_VALUES, message="forged")
    rows = [
        row("1_softmax", 2.0, 0.05, winner="a" * 64, curve=(CurvePoint(step=1, speedup=1.9),)),
        row("2_norm", 0.8, 0.05, category="norm"),
        row("3_matmul", None, category="matmul", why="no program was right", caught=(caught,)),
        row("1_softmax", 3.0, 0.05, arm="greedy"),
        row("2_norm", 0.9, 0.05, arm="greedy", category="norm"),
        row("3_matmul", 1.2, 0.05, arm="greedy", category="matmul"),
    ]
    folder = tmp_path_factory.mktemp("viewer") / "result"
    write_result(folder, result(rows))
    path = winner_path(folder, rows[0])
    path.parent.mkdir(parents=True)
    path.write_text(candidate(1).source)
    path.with_suffix(".json").write_text(evaluation(candidate(1), 2.0).model_dump_json())
    return folder


WriteReport = Callable[..., Path]


@pytest.fixture(scope="session")
def write(tmp_path_factory: pytest.TempPathFactory) -> WriteReport:
    """`write(store, "a-run", ..., results=[folder])` is a report's path."""

    def make(store: Path, *runs: str, results: list[Path] | None = None) -> Path:
        path = tmp_path_factory.mktemp("report") / "report.html"
        with Store.open(store) as opened, path.open("w", encoding="utf-8") as file:
            book = RunBook(opened, words_of, store)
            write_report(runs, book, ResultBook(results or []), file.write)
        return path

    return make


@pytest.fixture(scope="session")
def report(write: WriteReport, store_path: Path, result_path: Path) -> Path:
    return write(store_path, RUN, OTHER, results=[result_path])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if find_browser() is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with Browser.start() as browser:
        yield browser
