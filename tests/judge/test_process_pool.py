"""Programs that run in the sandbox, and what is told about those that cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_smith.evaluation.judge.processes.child import Interrupted
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.sandbox.wire import Channel
from kernel_smith.records import Limits


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ProcessPool]:
    """A test's own, of which it kills one."""
    tmp_path.chmod(0o755)
    processes = ProcessPool(tmp_path)
    yield processes
    processes.close()


def run(
    processes: ProcessPool, tmp_path: Path, argv: list[str], **limits: int
) -> tuple[int | None, str]:
    place = CoreSet.choose(None)
    target = tmp_path / "product"
    return processes.run_program(place, Limits(**limits), argv, {"in": "ab"}, "out", target, 20.0)


def test_a_product_comes_back(processes: ProcessPool, tmp_path: Path) -> None:
    assert run(processes, tmp_path, ["/bin/sh", "-c", "cat in in > out; echo done"]) == (0, "done")
    assert (tmp_path / "product").read_text() == "abab"


def test_a_program_that_cannot_be_run_is_named(processes: ProcessPool, tmp_path: Path) -> None:
    code, log = run(processes, tmp_path, ["/no/such/compiler"])
    assert code == 127
    assert log == "/no/such/compiler: cannot be run in the sandbox: No such file or directory"


def test_programs_that_take_too_much_memory_together_are_told_so(
    processes: ProcessPool, tmp_path: Path
) -> None:
    """Each stays below the limit that the system enforces; the monitor adds them up."""
    one = f"{sys.executable} -IS -c 'b = bytearray(48 << 20); import time; time.sleep(15)'"
    argv = ["/bin/sh", "-c", f"{one} & {one} & {one} & wait"]
    code, log = run(processes, tmp_path, argv, memory_bytes=64 << 20)
    assert code == -signal.SIGKILL
    assert "stopped:" in log
    assert "bytes of memory are in use" in log


def test_a_zygote_whose_judge_is_gone_before_it_begins_ends() -> None:
    """It could not be told otherwise from one whose judge is busy."""
    with subprocess.Popen(["true"]) as judge:
        pass
    held, given = Channel.pair()
    command = [sys.executable, "-m", "kernel_smith.evaluation.sandbox", "candidates"]
    done = subprocess.run(
        [*command, str(given.fileno()), str(judge.pid), "0"], pass_fds=(given.fileno(),), timeout=60
    )
    held.close()
    given.close()
    assert done.returncode == 128 + signal.SIGKILL


def test_a_program_whose_zygote_was_killed_says_nothing_about_the_candidate(
    processes: ProcessPool, tmp_path: Path, processes_with: Callable[[str], list[str]]
) -> None:
    run(processes, tmp_path, ["/bin/true"])
    seconds = f"15.{uuid.uuid4().int}"

    def kill() -> None:
        deadline = time.monotonic() + 60
        while not processes_with(seconds) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(processes._compilers.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(Interrupted):
        run(processes, tmp_path, ["/bin/sleep", seconds])
    killer.join()
    assert run(processes, tmp_path, ["/bin/true"])[0] == 0
