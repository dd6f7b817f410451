"""A judge for a GPU within the process that measures it, for benchmarks of its parts."""

from __future__ import annotations

import ast
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernel_smith.evaluation.judge.contestant import Contestant
from kernel_smith.evaluation.judge.journal import Journal
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device import DevicePlatform
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.sandbox.begin import be_zygote, load_torch
from kernel_smith.records import Candidate, Options


@contextlib.contextmanager
def judging() -> Iterator[DevicePlatform]:
    processes = ProcessPool(Path(tempfile.mkdtemp()))
    load_torch()
    processes.begin(be_zygote)
    place = CoreSet.choose(None).for_device()
    os.sched_setaffinity(0, place.judge)
    try:
        yield DevicePlatform(processes, place)
    finally:
        processes.close()


def start(
    bench: Bench[DeviceParticipant], backend: str, source: str, turn: int
) -> Contestant[DeviceParticipant]:
    """Load a program in a process of its own, which is another one for each `turn`."""
    source = f"{source}\n# {turn}\n"
    candidate = Candidate(backend=backend, source=source, name="candidate.py")
    journal = Journal(lambda _: None, bench.platform.step)
    contestant = Contestant(bench.platform, bench.task, candidate, Options(), journal)
    contestant.compile(ast.parse(source), bench.largest())
    contestant.load()
    return contestant
