"""A sweep with real processes and a real compiler: whatever a variant does is said of it alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.engines.base import Sweeper
from kernel_smith.evaluation.engines.pool import LocalPool
from kernel_smith.records import Candidate, Limits, Options, Reason, Sampling, Task

SECONDS = 120.0  # enough on a busy machine: nothing may be left out


@pytest.fixture
def options(quick: Options) -> Options:
    return quick.model_copy(update={"limits": Limits(call_seconds=2.0)})


def spoilt(source: str, statement: str) -> str:
    """The program with a statement at the beginning of its kernel."""
    return source.replace("    for (int64_t i", f"    {statement}\n    for (int64_t i", 1)


def test_every_variant_gets_what_it_deserves_and_the_next_verdict_is_unchanged(
    engine: LocalEngine, small_task: Task, honest_source: str, options: Options
) -> None:
    slow = "for (volatile int k = 0; k < 1 << 21; ) k = k + 1;"
    variants = {
        "equal": honest_source.replace("i < n; ++i", "i < n; i += 1"),
        "crashes": spoilt(honest_source, "*(volatile int*)nullptr = 1;"),
        "slow": spoilt(honest_source, slow),
        "wrong": honest_source.replace(": 0) + 1", ": 0)"),
        "hangs": spoilt(honest_source, "for (volatile int k = 0;; ) k = 1;"),
        "no C++": spoilt(honest_source, "no such thing;"),
        "no Python": honest_source + "\nraise ValueError('no')\n",
    }
    sources = list(variants.values())
    sweep = engine.sweep(small_task, Candidate(source=honest_source), sources, options, SECONDS)
    assert sweep.problem == "" and 0 < sweep.seconds < SECONDS
    found = dict(zip(variants, sweep.swept, strict=True))
    assert {name: swept.reason for name, swept in found.items() if swept.reason} == {
        "crashes": Reason.CRASHED,
        "wrong": Reason.WRONG_VALUES,
        "hangs": Reason.CALL_TIMEOUT,
        "no C++": Reason.COMPILER_REJECTED,
        "no Python": Reason.LOAD_EXCEPTION,
    }
    slower, equal = found["slow"].gain, found["equal"].gain
    assert slower is not None and slower.high < 1
    assert equal is not None and equal.value > slower.value
    assert engine.evaluate(small_task, Candidate(source=honest_source), options).ok


@pytest.mark.timing
def test_where_the_gain_of_each_is_wanted_nobody_drops_out_for_lying_behind(
    engine: LocalEngine, small_task: Task, honest_source: str, options: Options
) -> None:
    """A leader that is far ahead ends a race; here the others are timed as closely as it is."""
    slow = spoilt(honest_source, "for (volatile int k = 0; k < 1 << 14; ) k = k + 1;")
    steps = (1 << 11, 1 << 12, 1 << 13)
    variants = [
        spoilt(honest_source, f"for (volatile int k = 0; k < {count}; ) k = k + 1;")
        for count in steps
    ]
    parent, wanted = Candidate(source=slow), Sampling(target=0.05)
    asked = options.model_copy(update={"sampling": wanted})
    sweep = engine.sweep(small_task, parent, variants, asked, SECONDS, everybody=True)
    gains = [swept.gain for swept in sweep.swept if swept.gain is not None]
    assert len(gains) == 3 and all(gain.low > 1 for gain in gains)
    assert gains[0].value > gains[1].value > gains[2].value
    names = {workload.name for workload in small_task.workloads}
    assert all(set(swept.by_workload) == names for swept in sweep.swept)


def test_a_program_that_fails_itself_is_no_measure_for_others(
    engine: LocalEngine, small_task: Task, honest_source: str, wrong_source: str, options: Options
) -> None:
    for source in (wrong_source, spoilt(honest_source, "__builtin_trap();")):
        parent = Candidate(source=source)
        sweep = engine.sweep(small_task, parent, [honest_source], options, SECONDS)
        assert "the program itself failed" in sweep.problem
        assert not sweep.timed


def test_what_is_not_reached_in_time_is_left_out(
    engine: LocalEngine, small_task: Task, honest_source: str, options: Options
) -> None:
    variants = [spoilt(honest_source, f"volatile int k = {number};") for number in range(3)]
    sweep = engine.sweep(small_task, Candidate(source=honest_source), variants, options, 1e-6)
    assert len(sweep.swept) == 3 and not sweep.timed


def test_kernels_that_cannot_be_timed_here_are_not_swept(
    engine: LocalEngine, small_task: Task, honest_source: str, options: Options
) -> None:
    parent = Candidate(source=honest_source, backend="hip")
    sweep = engine.sweep(small_task, parent, [honest_source], options, SECONDS)
    assert "cannot be timed on this machine" in sweep.problem


def test_a_pool_sweeps_in_one_of_its_lanes(
    lanes_share_the_judge: None, small_task: Task, honest_source: str, options: Options
) -> None:
    variants = [spoilt(honest_source, "volatile int k = 7;")]
    with LocalPool(1) as pool:
        assert isinstance(pool, Sweeper)
        parent = Candidate(source=honest_source)
        sweep = pool.sweep(small_task, parent, variants, options, SECONDS).result(SECONDS)
    assert sweep.timed


SWEEPING = """
from pathlib import Path

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Options
from kernel_smith.tasks import read_task

source = Path("program.py").read_text()
hang = "for (volatile int k = 0;; ) k = 1;"
hanging = source.replace("for (int64_t i", hang + " for (int64_t i")
with LocalEngine() as engine:
    print(*engine.process_ids().values(), flush=True)
    engine.sweep(
        read_task(Path("task.py")), Candidate(source=source), [hanging], Options(), 600.0,
        progress=lambda what: print(what, flush=True),
    )
"""


@pytest.mark.slow
def test_a_sweep_leaves_no_process_behind_when_the_run_is_killed(
    tmp_path: Path, small_task: Task, honest_source: str
) -> None:
    (tmp_path / "task.py").write_text(small_task.source)
    (tmp_path / "program.py").write_text(honest_source)
    command = [sys.executable, "-c", SWEEPING]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        judge, zygote = map(int, run.stdout.readline().split())
        assert "compiling" in run.stdout.readline()
        _wait_until(lambda: len(_children(zygote)) > 1)  # the reference's process, and this one
        family = [judge, *_descendants(judge)]
        assert zygote in family and len(family) > 5
        os.kill(run.pid, signal.SIGKILL)
    _wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    with contextlib.suppress(OSError):  # it has ended
        return [int(child) for task in tasks for child in task.read_text().split()]
    return []


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return children + [further for child in children for further in _descendants(child)]


def _wait_until(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
