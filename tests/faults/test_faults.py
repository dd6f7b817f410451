"""Whatever a candidate, or the operator, breaks: the next honest candidate is judged as before.

(`tests/engines/test_local_engine.py` kills trusted processes during an evaluation.)
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Limits,
    Options,
    Reason,
    Sampling,
    Stage,
    Task,
)
from kernel_smith.tasks import read_task

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def get_inputs():
    return [torch.randn(64, 65)]
"""

HONEST = '''
import torch
from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
#include <csignal>
#include <cstdlib>
#include <vector>
extern "C" void relu2(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? 2 * x[i] : 0;
}
extern "C" void misbehave() { KERNEL_MISDEED; }
"""
kernels = cpp(SOURCE)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        PYTHON_MISDEED
        y = torch.empty_like(x)
        kernels.relu2(x, y, x.numel())
        return y
'''

IN_KERNEL = {
    "segfault": "*(volatile int*)nullptr = 1",
    "abort": "std::abort()",
    "illegal instruction": "__builtin_trap()",
    "endless loop": "for (volatile int i = 0;; ) i = i + 1",
    "stack overflow": "volatile char a[1 << 30]; for (long i = 0; i < 1 << 30; i += 4096) a[i] = 1",
    "memory bomb": "std::vector<char*> v; for (;;) { char* p = (char*)malloc(1 << 24);"
    " if (!p) std::abort(); for (int i = 0; i < 1 << 24; i += 4096) p[i] = 1; v.push_back(p); }",
}
IN_PYTHON = {
    "endless python loop": "while True: pass",
    "exit": "import os; os._exit(0)",
    "sys.exit": "import sys; sys.exit(0)",
    "python memory bomb": "self.hoard = [torch.empty(1 << 24) for _ in range(10_000)]",
    "fork bomb": "import os\n        while True: os.fork()",
    "thread bomb": "import threading, time\n"
    "        for _ in range(100_000): threading.Thread(target=time.sleep, args=(60,)).start()",
    "disk fill": "data = bytes(1 << 20)\n        with open('fill', 'wb') as f:\n"
    "            while True: f.write(data)",
    "many files": "i = 0\n        while True:\n            i += 1\n"
    "            open(f'f{i}', 'wb').write(bytes(4096))",
    "kill everything": "import os\n        os.kill(-1, 9)\n        os.kill(os.getppid(), 9)",
    "closes every descriptor": "import os\n        os.closerange(0, 256)",
    "recursion": "f = lambda g: g(g)\n        f(f)",
}
# Each ends as one that is not among them does: by a signal, at the limit of memory or of time.
ALIKE = {"abort", "illegal instruction", "python memory bomb", "endless python loop"}
EXPECTED = {
    "endless loop": Stage.TIMEOUT,
    "endless python loop": Stage.TIMEOUT,
    "recursion": Stage.RUNTIME_ERROR,
}


def program(kernel: str = "", python: str = "pass") -> str:
    return HONEST.replace("KERNEL_MISDEED", kernel).replace("PYTHON_MISDEED", python)


def guilty(name: str) -> str:
    if name in IN_KERNEL:
        return program(IN_KERNEL[name], "kernels.misbehave()")
    return program(python=IN_PYTHON[name])


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    path = tmp_path_factory.mktemp("task") / "relu2.py"
    path.write_text(TASK)
    return read_task(path)


@pytest.fixture(scope="module")
def at_most(engine: LocalEngine, task: Task) -> int:
    """How many processes the judge has while no candidate runs: zygotes, and for each task that is
    ready the reference's process with its monitor."""
    assert judge(engine, task, program()).stage is Stage.OK
    return len(processes_below(engine.process_ids()["judge"]))


def judge(engine: LocalEngine, task: Task, source: str, call_seconds: float = 20) -> Evaluation:
    sampling = Sampling(target=10, unstable_above=1e9, min_rounds=3, max_rounds=3, max_seconds=5)
    limits = Limits(call_seconds=call_seconds, load_seconds=20, memory_bytes=1 << 30)
    options = Options(screen=False, seeds=1, sampling=sampling, limits=limits)
    return engine.evaluate(task, Candidate(source=source), options)


def processes_below(pid: int) -> set[int]:
    """All living descendants of a process."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if stat[0] != "Z":
            parents[int(entry.name)] = int(stat[1])
    below = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in below} - below
        if not more:
            return below - {pid}
        below |= more


def assert_nothing_is_left(engine: LocalEngine, at_most: int) -> None:
    pid = engine.process_ids()["judge"]
    deadline = time.monotonic() + 60
    while len(processes_below(pid)) > at_most and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(processes_below(pid)) <= at_most


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.sweep if name in ALIKE else ())
        for name in [*IN_KERNEL, *IN_PYTHON]
    ],
)
def test_after_a_misdeed_the_next_honest_candidate_is_ok(
    engine: LocalEngine, task: Task, at_most: int, name: str
) -> None:
    stage = EXPECTED.get(name, Stage.RUNTIME_ERROR)
    # What comes to an end by itself gets the time for it on a slow machine, too.
    bad = judge(engine, task, guilty(name), 0.2 if stage is Stage.TIMEOUT else 20)
    assert bad.stage is stage, bad.message + bad.log
    assert bad.reason is not None
    assert judge(engine, task, program()).stage is Stage.OK
    assert_nothing_is_left(engine, at_most)


def test_crash_report_names_signal_and_python_line(engine: LocalEngine, task: Task) -> None:
    bad = judge(engine, task, guilty("segfault"))
    assert "SIGSEGV" in bad.message
    assert "in forward" in bad.log


# `tests/engines/test_local_engine.py` kills a zygote in the midst of an evaluation.
@pytest.mark.parametrize("role", ["judge", pytest.param("zygote", marks=pytest.mark.sweep)])
def test_a_killed_trusted_process_is_replaced_between_candidates(
    engine: LocalEngine, task: Task, role: str
) -> None:
    assert judge(engine, task, program()).stage is Stage.OK
    os.kill(engine.process_ids()[role], signal.SIGKILL)
    assert judge(engine, task, program()).stage is Stage.OK


def test_a_killed_candidate_is_a_crash_and_leaves_nothing(
    engine: LocalEngine, task: Task, at_most: int
) -> None:
    below = processes_below(engine.process_ids()["judge"])
    compiling = [pid for pid in below if b"compilers" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert compiling
    spinning = guilty("endless loop")

    def kill_the_newcomer() -> None:
        deadline = time.monotonic() + 60
        pid = engine_pid
        while time.monotonic() < deadline:
            others = below.union(*map(processes_below, compiling))
            for candidate in processes_below(pid) - others:
                children = Path(f"/proc/{candidate}/task/{candidate}/children")
                try:
                    is_leaf = not children.read_text().strip()
                    busy = int((Path(f"/proc/{candidate}") / "stat").read_text().split()[13]) > 2
                except (OSError, ValueError):
                    continue
                if is_leaf and busy:
                    os.kill(candidate, signal.SIGKILL)
                    return
            time.sleep(0.01)

    engine_pid = engine.process_ids()["judge"]
    killer = threading.Thread(target=kill_the_newcomer)
    killer.start()
    evaluation = judge(engine, task, spinning)
    killer.join()
    assert evaluation.stage in (Stage.RUNTIME_ERROR, Stage.TIMEOUT, Stage.LOAD_ERROR)
    assert judge(engine, task, program()).stage is Stage.OK
    assert_nothing_is_left(engine, at_most)


def test_a_rare_mistake_is_an_error_and_not_cheating(engine: LocalEngine, task: Task) -> None:
    """The checks may miss what the timed calls then show; whoever is wrong each time is honest."""
    mistaken = program().replace(
        "kernels.relu2(x, y, x.numel())", "kernels.mostly(x, y, x.numel())"
    )
    mistaken = mistaken.replace(
        'extern "C" void misbehave()',
        'extern "C" void mostly(const float* x, float* y, int64_t n) {'
        " relu2(x, y, n); if (x[0] > 0.5f && x[0] < 5.0f)"
        " for (int64_t i = 0; i < n; ++i) y[i] = 3 * y[i] + 1; }\n"
        'extern "C" void misbehave()',
    )
    verdicts = [judge(engine, task, f"{mistaken}\n# {i}") for i in range(4)]
    reasons = {verdict.reason for verdict in verdicts}
    assert reasons == {Reason.WRONG_VALUES}, [v.message for v in verdicts]
