"""Time that neighbours took is told from time that a program took."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.processes.waiting import Neighbours, Waiting

SPIN = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
seconds = st.floats(0, 10)


@pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="nobody counts it here"
)
def test_who_shares_a_core_waits_for_it() -> None:
    core = str(min(os.sched_getaffinity(0)))
    pair = [subprocess.Popen([sys.executable, "-c", SPIN, core]) for _ in range(2)]
    waiting = [Waiting(process.pid) for process in pair]
    try:
        deadline = time.monotonic() + 60
        while min(each.seconds() for each in waiting) < 0.1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        for process, each in zip(pair, waiting, strict=True):
            process.kill()
            process.wait()
            each.close()
            each.close()
    assert [each.seconds() for each in waiting] == [0.0, 0.0]


def test_who_sleeps_does_not_wait() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        waiting = Waiting(sleeper.pid)
        deadline, before = time.monotonic() + 60, -1.0
        while waiting.seconds() != before:  # until it sleeps
            assert time.monotonic() < deadline
            before = waiting.seconds()
            time.sleep(0.1)
        sleeper.kill()
        waiting.close()


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert Waiting(1 << 22).seconds() == 0.0


@functools.cache
def neighbours(cores: int) -> Neighbours:
    return Neighbours(os.getpid(), cores)


@given(seconds, seconds, seconds, st.integers(1, 8))
def test_no_batch_takes_less_than_was_computed(
    wall: float, waited: float, cpu: float, cores: int
) -> None:
    taken = neighbours(cores).without(waited, wall, cpu)
    assert min(wall, cpu / cores) <= taken <= wall
    assert taken >= wall - waited


def test_an_undisturbed_batch_takes_what_the_clock_says() -> None:
    assert neighbours(1).without(0.0, 0.002, 0.0019) == 0.002
    assert neighbours(1).without(0.004, 0.006, 0.0019) == pytest.approx(0.002)
    # Threads of its own made it wait.
    assert neighbours(1).without(0.004, 0.006, 0.006) == 0.006
