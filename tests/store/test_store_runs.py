"""The list of runs, and who may write to one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sample_events import BEGIN, candidate, evaluation, proposed, started, steps

from kernel_smith.errors import BadInput
from kernel_smith.records import Remeasured, RunEnded, RunResumed
from kernel_smith.store import RunSummary, Store

HOLDER = """
import sys, time
from pathlib import Path
from kernel_smith.store import Store
lock = Store.open(Path(sys.argv[1])).lock("run-1")
print("locked", flush=True)
time.sleep(600)
"""


def only(store: Store) -> RunSummary:
    (summary,) = store.runs()
    return summary


def test_a_summary_follows_the_events(store: Store) -> None:
    fresh = only(store)
    assert (fresh.id, fresh.task, fresh.backend) == ("run-1", "row_softmax", "cpp")
    assert (fresh.evaluations, fresh.best, fresh.ended) == (0, None, None)
    assert fresh.started == BEGIN
    for event in steps(4):
        store.append("run-1", event)
    later = only(store)
    assert (later.evaluations, later.events) == (4, 9)
    assert later.best is not None and later.best.value == pytest.approx(1.3)
    assert later.best_candidate == candidate(3).content_hash
    assert later.last > later.started


def test_the_best_is_what_the_last_measuring_says(store: Store) -> None:
    for event in steps(4):
        store.append("run-1", event)
    best = candidate(3)
    again = evaluation(best, 1.05)
    store.append("run-1", Remeasured(candidate=best.content_hash, evaluation=again, at=BEGIN))
    assert only(store).best_candidate == candidate(2).content_hash
    wrong = evaluation(candidate(2), None)
    store.append(
        "run-1", Remeasured(candidate=candidate(2).content_hash, evaluation=wrong, at=BEGIN)
    )
    assert only(store).best_candidate == candidate(1).content_hash


def test_no_statement_of_an_event_looks_at_all_that_came_before(store: Store) -> None:
    """Else a run would get slower with every step."""
    said: list[str] = []
    store._connection.set_trace_callback(said.append)
    for event in steps(2):
        store.append("run-1", event)
    store._connection.set_trace_callback(None)
    asked = [each for each in said if not each.startswith(("BEGIN", "COMMIT", "--"))]
    assert any("binary" in each for each in asked)
    for statement in asked:
        plan = [row[3] for row in store._connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
        assert not [each for each in plan if each.startswith("SCAN")], statement
        if each_twin := [each for each in plan if "scores" in each and "SELECT" in statement]:
            assert all("(run=? AND binary=?)" in each for each in each_twin), statement


def test_a_run_without_a_writer_is_interrupted_until_it_ends(store: Store) -> None:
    assert only(store).state == "interrupted"
    with store.lock("run-1"):
        assert only(store).state == "running"
    assert only(store).state == "interrupted"
    store.append("run-1", RunEnded(why="budget", at=BEGIN))
    assert (only(store).state, only(store).ended) == ("ended", BEGIN)
    store.append("run-1", RunResumed(at=BEGIN))
    assert (only(store).state, only(store).ended) == ("interrupted", None)


def test_runs_are_listed_newest_first_and_found_by_their_beginning(store: Store) -> None:
    for name in ("softmax-1", "softmax-2", "softmax"):
        store.append(name, started(name))
    assert [run.id for run in store.runs()] == ["softmax", "softmax-2", "softmax-1", "run-1"]
    assert store.run_ids_matching("softmax-") == ["softmax-2", "softmax-1"]
    assert store.find_run("latest") == "softmax"
    assert store.find_run("softmax") == "softmax"
    assert store.find_run("r") == "run-1"
    with pytest.raises(BadInput, match="may be softmax-2, softmax-1"):
        store.find_run("softmax-")
    with pytest.raises(BadInput, match="no run is called 'x'"):
        store.find_run("x")


def test_an_empty_store_says_how_to_start_a_run(path: Path) -> None:
    with Store.open(path, create=True) as store:
        assert store.runs() == []
        with pytest.raises(BadInput, match="holds no run") as caught:
            store.find_run("latest")
    assert "optimize" in caught.value.hint


def test_a_second_writer_is_told_who_the_first_is(store: Store) -> None:
    with store.lock("run-1"):
        with pytest.raises(BadInput, match=f"pid {os.getpid()}"):
            store.lock("run-1")
        store.lock("run-2").release()
    store.lock("run-1").release()


def test_a_lock_dies_with_its_process(store: Store, path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        assert only(store).state == "running"
        with pytest.raises(BadInput, match=f"pid {holder.pid}"):
            store.lock("run-1")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert only(store).state == "interrupted"
    with store.lock("run-1"):
        store.append("run-1", proposed(0))
