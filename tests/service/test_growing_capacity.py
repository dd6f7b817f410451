"""A service in front of an engine whose devices come and go, or are not here at all."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path

import pytest
from job_samples import request
from serving import LONG, body, http_client, until

from kernel_smith.evaluation.service import dispatcher as module
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.records import Candidate, Evaluation, JobState, Options, Task


class ChangingEngine:
    """Has as many lanes as it is told to have, and never ends anything."""

    def __init__(self) -> None:
        self.lanes: int | None = 0
        self.asked = 0

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        self.asked += 1
        return Future()

    def capacity(self) -> int:
        if self.lanes is None:
            raise ConnectionError("nobody is there")
        return self.lanes


def test_the_capacity_is_that_of_the_engine_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors_logged: list[logging.LogRecord]
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
    engine = ChangingEngine()
    with JobBook.open(tmp_path / "jobs.sqlite") as book:
        dispatcher = Dispatcher(book, engine, capacity=engine.capacity)
        dispatcher.start()
        try:
            book.submit_many("a", [request(number) for number in range(6)])
            assert engine.asked == 0
            engine.lanes = 2
            until(lambda: engine.asked == 2)
            engine.lanes = None
            until(lambda: errors_logged)
            assert dispatcher.capacity == 2
            engine.lanes = 5
            until(lambda: engine.asked == 5)
            assert book.counts()[JobState.WAITING] == 1
        finally:
            dispatcher.close()


def test_the_command_serves_with_the_engine_that_it_is_given(tmp_path: Path) -> None:
    program = "from kernel_smith.cli.serve import app; app()"
    command = [sys.executable, "-u", "-c", program, "--port", "0", "--engine", "simulated:7:0"]
    command += ["--store", str(tmp_path / "jobs.sqlite")]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        http_client() as http,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[2].rstrip(",")
            assert http.get(f"{url}/v1/capacity").json()["lanes"] == 7
            job = http.post(f"{url}/v1/jobs", json=body()).json()["id"]
            ended = http.get(f"{url}/v1/jobs/{job}?wait=20").json()
            assert ended["evaluation"]["environment"]["processor"] == "simulated"
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONG) == 0
        finally:
            process.kill()
