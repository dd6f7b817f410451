"""Judges on cores of their own: several services on one machine, and who of them gets a job.

    with Fleet(judges=5) as fleet:
        fleet.submit(task, candidate).result()

Each judge may use its own share of the cores alone, so judges do not wait for each other's turn to
measure. What is left of the cores is for whoever asks. A job goes to the judge with the fewest
jobs, preferably to one that has its task ready.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from service_process import Server

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.pool import TASKS_KEPT_READY
from kernel_smith.evaluation.engines.remote import RemoteEngine
from kernel_smith.records import Candidate, Evaluation, Options, Task

_LEAST_CORES = 2  # one for the judge, the others for what it times
_COST_OF_ANOTHER_TASK = 2  # in jobs: preparing a task takes about as long
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"

# The judge chooses its cores before anything starts, and ends when whoever started it does. How
# many threads the script may use says nothing of what is judged.
_SERVE = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
os.sched_setaffinity(0, {cores})
os.environ.pop("OMP_NUM_THREADS", None)
from kernel_smith.cli.entry import main
main()
"""


@dataclass(eq=False)
class _Judge:
    engine: RemoteEngine
    jobs: int = 0
    ready: deque[str] = field(default_factory=lambda: deque(maxlen=TASKS_KEPT_READY))

    def cost(self, task: str) -> int:
        return self.jobs + (0 if task in self.ready else _COST_OF_ANOTHER_TASK)


class Fleet:
    """An `Evaluator` while it is open."""

    def __init__(self, judges: int) -> None:
        self._before = os.sched_getaffinity(0)
        self.own, self.shares = divide(_by_processor(self._before), judges)
        self._lock = threading.Lock()
        self._judges: list[_Judge] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # Jobs of a fleet that was stopped are asked for again, so none need be kept.
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            servers = [
                _server(cores, folder / f"{number}.sqlite")
                for number, cores in enumerate(self.shares)
            ]
            for server in servers:
                stack.callback(server.stop)
                server.start()
            self._judges = [_Judge(RemoteEngine(server.url)) for server in servers]
            for judge in self._judges:
                stack.push(judge.engine.__exit__)
            stack.callback(os.sched_setaffinity, 0, self._before)
            os.sched_setaffinity(0, self.own)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        judge = self._choose(task.content_hash)
        future = judge.engine.submit(task, candidate, options, beside=beside)
        future.add_done_callback(lambda _: self._done(judge))
        return future

    def _choose(self, task: str) -> _Judge:
        with self._lock:
            chosen = min(self._judges, key=lambda judge: judge.cost(task))
            chosen.jobs += 1
            if task in chosen.ready:
                chosen.ready.remove(task)
            chosen.ready.append(task)
            return chosen

    def _done(self, judge: _Judge) -> None:
        with self._lock:
            judge.jobs -= 1


def divide(cores: Sequence[int], judges: int) -> tuple[set[int], list[set[int]]]:
    """The asker's cores, and those of each judge. The asker has the first one at least, but on a
    machine with too few for that shares all of them with a single judge."""
    if judges == 1 and len(cores) <= _LEAST_CORES:
        return set(cores), [set(cores)]
    width = (len(cores) - 1) // judges
    if width < _LEAST_CORES:
        most = max(1, (len(cores) - 1) // _LEAST_CORES)
        raise BadInput(
            f"{len(cores)} cores are too few for {judges} judges with {_LEAST_CORES} each",
            hint=f"ask for {most} judge{'s' if most > 1 else ''}",
        )
    first = len(cores) - judges * width
    shares = [set(cores[start : start + width]) for start in range(first, len(cores), width)]
    return set(cores[:first]), shares


def _by_processor(cores: set[int]) -> list[int]:
    """Threads of the same core lie side by side, so that they go to the same judge."""

    def siblings(core: int) -> tuple[int, int]:
        try:
            text = Path(_SIBLINGS.format(core)).read_text()
        except OSError:
            return core, core
        return int(text.replace("-", ",").split(",")[0]), core

    return sorted(cores, key=siblings)


def _server(cores: set[int], store: Path) -> Server:
    program = _SERVE.format(cores=sorted(cores))
    command = [sys.executable, "-c", program, "serve", "--store", str(store)]
    # What it judges runs on the CPU; the GPU is the model's.
    return Server([*command, "--drain-seconds", "1"], {"CUDA_VISIBLE_DEVICES": ""})
