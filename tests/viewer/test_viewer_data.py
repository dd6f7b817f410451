"""From a store to the data of pages: the figures are those of the run, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from viewer_samples import CEILINGS, RUN, events

from kernel_smith.cli.task_words import words_of
from kernel_smith.errors import BadInput
from kernel_smith.store import History, Store
from kernel_smith.store.facts import GATES
from kernel_smith.viewer.bench_page import ResultBook, is_result
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.fold import RunFold
from kernel_smith.viewer.records import PORTION, RunPage
from kernel_smith.viewer.run_page import run_page


@pytest.fixture(scope="module")
def page(store_path: Path) -> RunPage:
    with Store.open(store_path) as store:
        return RunBook(store, words_of).page(RUN)


def test_a_page_has_the_figures_of_the_run(page: RunPage) -> None:
    history = History.of(events())
    assert history.best is not None and history.best.speedup is not None and page.best is not None
    assert page.steps.step == list(history.steps)
    assert page.steps.step[page.best] == history.best.step
    assert page.steps.value[page.best] == pytest.approx(history.best.speedup.value, rel=1e-4)
    assert page.funnel == {gate: history.funnel[gate] for gate in GATES}
    assert page.usage == history.usage == page.model_usage["a-model"]
    assert [each.baseline for each in page.shown] == ["eager", "compile"]
    assert page.dropped[0].why == "the program is known"
    assert {page.names.stages[each] for each in page.steps.stage if each is not None} == {
        "ok",
        "compile-error",
        "incorrect",
    }


def test_the_curve_ends_with_what_is_known_of_the_best(page: RunPage) -> None:
    assert page.best is not None
    last = page.curve[-1]
    assert last.step == page.steps.step[page.best]
    assert last.best.low == pytest.approx(page.steps.low[page.best], rel=1e-4)
    assert [gain.step for gain in page.gains] == [page.steps.step[each] for each in page.held]
    assert page.gains[0].before is None and all(gain.before for gain in page.gains[1:])
    beside = [gain.beside for gain in page.gains]
    assert beside[0] is None and all(beside[1:]), "each was timed beside the best before it"


def test_spans_say_when_something_was_evaluated(page: RunPage) -> None:
    kinds = {span.what for span in page.spans}
    assert kinds == {"step", "again", "full"}
    assert all(0 <= span.begin <= span.end <= page.seconds for span in page.spans)
    confirming = next(span for span in page.spans if span.what == "full")
    assert confirming.end - confirming.begin == pytest.approx(8.0)  # its event says nothing


def test_a_gpu_s_limits_and_cells_come_along(page: RunPage) -> None:
    assert page.ceilings == CEILINGS
    timed = [at for at, value in enumerate(page.steps.value) if value is not None]
    assert {point.position for point in page.rooflines} == set(timed)
    assert {point.intensity is None for point in page.rooflines} == {True, False}
    for position in timed:
        number = page.steps.cell[position]
        assert number is not None
        assert all(
            bin in axis.bins for bin, axis in zip(page.names.cells[number], page.axes, strict=True)
        )


def test_portions_hold_every_step_once(store_path: Path, page: RunPage) -> None:
    found = {}
    with Store.open(store_path) as store:
        book = RunBook(store, words_of)
        for portion in range(-(-len(page.steps.step) // PORTION)):
            found |= book.portion(RUN, portion).steps
    assert sorted(found) == list(range(len(page.steps.step)))
    assert [found[at].step for at in sorted(found)] == page.steps.step
    best = found[page.best or 0]
    assert best.measured[0].kind == "step" and best.measured[-1].kind == "full"
    assert "the speed of eager" in best.measured[-1].words
    again = [each for each in best.measured if each.kind == "again"]
    assert again and "the speed of step " in again[0].words, "steps, no hashes"
    asked = next(each for each in found.values() if each.messages)
    assert asked.messages[0] == ("system", "You write kernels.") and asked.response


@given(seed=st.integers(0, 1000), steps=st.integers(0, 25), stop=st.integers(1, 200))
def test_any_part_of_any_run_makes_a_page(seed: int, steps: int, stop: int) -> None:
    fold = RunFold()
    for sequence, event in enumerate(events(steps=steps, seed=seed), start=1):
        if sequence > stop:
            break
        fold.add(sequence, event)
    page = run_page(fold, "interrupted", None, ["scale"], None)
    best = fold.history.best
    assert (page.best is None) == (best is None)
    assert len(page.steps.step) == len(fold.history.steps)
    for parent, child in zip(page.steps.parent, page.steps.step, strict=True):
        assert parent is None or page.steps.step[parent] < child
    RunPage.model_validate_json(page.model_dump_json())


def test_pages_follow_a_run_that_goes_on(tmp_path: Path) -> None:
    """What is read later gives the same as what is read at once."""
    path = tmp_path / "runs.sqlite"
    with Store.open(path, create=True) as store:
        book = RunBook(store, words_of)
        for number, event in enumerate(events()):
            store.append(RUN, event)
            if number % 10 == 0:
                book.page(RUN)
        assert book.page(RUN) == RunBook(store, words_of).page(RUN)
        assert book.cards()[0].cost is not None


def test_commands_name_the_task_and_the_store(store_path: Path) -> None:
    with Store.open(store_path) as store:
        commands = RunBook(store, words_of, store_path).page(RUN).commands
    assert commands["source"].endswith(f"--step STEP -o FILE --store {store_path}")
    assert "evaluate scale FILE" in commands["evaluate"]
    assert "--baseline eager --baseline compile" in commands["evaluate"]


def test_what_is_not_there_is_bad_input(store_path: Path, tmp_path: Path) -> None:
    with Store.open(store_path) as store, pytest.raises(BadInput):
        RunBook(store, words_of).page("nobody")
    with pytest.raises(BadInput):
        ResultBook([]).page("nothing")
    assert not is_result(tmp_path)


def test_a_benchmark_s_page_scores_and_compares(result_path: Path) -> None:
    book = ResultBook([result_path / "result.json"])
    page = book.page(str(result_path))
    assert [board.arm for board in page.boards] == ["islands", "greedy"]
    assert page.comparisons[0].gained == ("3_matmul",)
    winners = book.portion(str(result_path), 0).winners
    assert list(winners) == [0] and "ModelNew" in winners[0].source


def test_the_data_is_made_without_torch() -> None:
    program = (
        "import sys, kernel_smith.viewer.report, kernel_smith.viewer.server; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
