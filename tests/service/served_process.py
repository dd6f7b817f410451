"""A service as a process of its own, to be killed by tests.

`python served_process.py FOLDER DRAIN-SECONDS PORT`. It evaluates by making things up, and notes
each candidate in FOLDER/evaluated when it begins. Its address is in FOLDER/address.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from kernel_smith.evaluation.service.book import BookLimits, JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.server import Service
from kernel_smith.records import Candidate, Evaluation, Options, Task
from kernel_smith.testing.trivial import TrivialEngine

LANES = 2


class NotingEngine(TrivialEngine):
    def __init__(self, file: Path) -> None:
        super().__init__(lambda _: 2.0, seconds=0.01, lanes=LANES)
        self._file = open(file, "a", buffering=1)  # noqa: SIM115 (it lives as long as the process)

    def submit(
        self, task: Task, candidate: Candidate, options: Options | None = None, **more: Any
    ) -> Future[Evaluation]:
        self._file.write(f"{candidate.source}\n")
        return super().submit(task, candidate, options, **more)


def main(folder: Path, seconds: float, port: int) -> None:
    # Those who kill it on purpose do so more often than any evaluation would.
    limits = BookLimits(attempts=1000)
    with JobBook.open(folder / "jobs.sqlite", limits=limits) as book:
        engine = NotingEngine(folder / "evaluated")
        dispatcher = Dispatcher(book, engine, capacity=LANES)
        service = Service(book, dispatcher, port=port, drain_seconds=seconds)
        half = folder / "address.half"
        half.write_text(service.url)
        os.replace(half, folder / "address")
        given_back = service.run()
    print(f"given back: {given_back}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
