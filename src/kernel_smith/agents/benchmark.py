"""A benchmark that an agent starts: some problems, a budget for each, and an end in time.

What is left when the time or the evaluations are over is gone on with by the same call.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.agents import answers
from kernel_smith.agents.long_work import LongWork
from kernel_smith.bench.arms import Protocol, make_plans
from kernel_smith.bench.folder import Winners, write_result
from kernel_smith.bench.report import markdown
from kernel_smith.bench.runner import Job, Runner
from kernel_smith.bench.stamping import stamped
from kernel_smith.bench.suites import Selection, find_problems
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Budget, Event, StepEvaluated
from kernel_smith.records.bench import BenchRow
from kernel_smith.runs.campaign import Campaign
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store


@dataclass(frozen=True)
class Wanted:
    """What an agent asks for."""

    suites: tuple[str, ...]
    problems: tuple[str, ...]
    sample: int | None
    methods: tuple[str, ...]
    told: tuple[str, ...]
    backend: str
    evaluations: int
    minutes: float
    folder: Path


class _Counting:
    """A `Listener` that counts, tells, and stops the campaign when enough was evaluated."""

    def __init__(self, work: LongWork, problems: int, most: int, campaign: Campaign) -> None:
        self._work = work
        self._problems = problems
        self._most = most
        self._campaign = campaign
        self._lock = threading.Lock()
        self._done = 0
        self.evaluations = 0

    def hear(self, job: Job, event: Event, state: RunState) -> None:
        if not isinstance(event, StepEvaluated):
            return
        with self._lock:
            self.evaluations += 1
            self._tell()
            enough = self.evaluations >= self._most
        if enough:
            self._campaign.stop()

    def done(self, row: BenchRow, *, known: bool) -> None:
        with self._lock:
            self._done += 1
            self._tell()

    def _tell(self) -> None:
        self._work.words = (
            f"benchmark: {self._done} of {self._problems} done, {self.evaluations} evaluations"
        )


def run_benchmark(
    wanted: Wanted, engine: Evaluator, most: int, work: LongWork
) -> tuple[answers.Benched, int]:
    """Solve the problems with at most so many evaluations; return also how many there were."""
    selection = Selection(globs=wanted.problems, sample=wanted.sample)
    problems = find_problems(wanted.suites, selection, ())
    if not problems:
        raise BadInput("no problem has such a name", hint="kernel-smith bench list SUITE")
    protocol = Protocol(backend=wanted.backend, limits={"evaluations": wanted.evaluations})
    plans = make_plans(wanted.methods, wanted.told, protocol)
    jobs = [Job(plan, each) for each in problems for plan in plans]
    winners = Winners(wanted.folder)
    _make(wanted.folder)
    with Store.open(wanted.folder / "runs.sqlite", create=True) as book:
        campaign = Campaign(book, time.monotonic() + 60 * wanted.minutes)
        counting = _Counting(work, len(jobs), most, campaign)
        work.on_stop(campaign.stop)
        rows = Runner(campaign, engine, jobs, Budget(), counting, winners.keep).run(1)
    result = stamped(
        rows,
        plans,
        winners.places,
        wanted.suites,
        selection,
        refused="count",
        seed=protocol.seed,
        at_once=1,
        lanes=1,
    )
    text = markdown(result, write_result(wanted.folder, result))
    return answers.Benched.of(rows, wanted.folder, text), counting.evaluations


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot be made ({error.strerror or error})", hint="name another folder"
        ) from None
