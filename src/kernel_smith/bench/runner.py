"""Runs every arm on every problem: side by side, in one store, and on from where it was stopped.

Each pair of an arm and a problem is a run of a campaign. A problem that fails, hangs or cannot be
judged ends with a row that says so, and leaves the others alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from kernel_smith.bench.arms import NoProgram, Plan, differs
from kernel_smith.bench.fitness import Examiner, unfit
from kernel_smith.bench.rows import row_of, row_without_run
from kernel_smith.bench.spending import Spending
from kernel_smith.bench.suites import Problem
from kernel_smith.errors import BadInput, InternalError, UserError
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Budget, Event, RunConfig, Task
from kernel_smith.records.bench import BenchRow, Status
from kernel_smith.runs.campaign import Campaign, Key, OutOfTime
from kernel_smith.runs.loop import Audience
from kernel_smith.runs.state import RunState
from kernel_smith.search.offered import MethodFailed


@dataclass(frozen=True)
class Job:
    """One problem for one arm."""

    plan: Plan
    problem: Problem

    @property
    def key(self) -> Key:
        name = f"{self.problem.name}@{self.problem.precision.value}"
        return Key(self.plan.name, name, self.plan.protocol.seed)


class Listener(Protocol):
    """Whoever watches. Called from several threads."""

    def hear(self, job: Job, event: Event, state: RunState) -> None:
        """Something has happened in a run."""

    def done(self, row: BenchRow, *, known: bool) -> None:
        """A problem is done with; `known`: it was before this session."""


Keep = Callable[[BenchRow, RunState], None]
"""Takes what came of a run, as soon as it is known."""


class Runner:
    def __init__(
        self,
        campaign: Campaign,
        engine: Evaluator,
        jobs: Sequence[Job],
        in_all: Budget,
        listener: Listener,
        keep: Keep,
    ) -> None:
        self._campaign = campaign
        self._engine = engine
        self._jobs = jobs
        self._listener = listener
        self._keep_row = keep
        self._rows: dict[Key, BenchRow] = {}
        self._states: dict[Key, RunState] = {}
        self._lock = threading.Lock()
        self._fatal: UserError | None = None
        self.spending = Spending(in_all, lambda why: campaign.stop())
        some_plan = jobs[0].plan
        self._examiner = Examiner(engine, some_plan.describe().options)

    def run(self, at_once: int, *, again: bool = False) -> list[BenchRow]:
        """Return a row for each job, in their order.

        `again`: problems that could not be judged are looked at once more. Raises what makes all
        further work useless, such as a compiler that is not there.
        """
        left = [job for job in self._jobs if not self._is_known(job, again)]
        work = [partial(self._do, job) for job in left]
        self._campaign.do(work, at_once)
        if self._fatal is not None:
            raise self._fatal
        for job in left:
            if job.key not in self._rows:  # nobody had begun with it
                self._keep(job, self._unfinished(job))
        return [self._rows[job.key] for job in self._jobs]

    def _is_known(self, job: Job, again: bool) -> bool:
        """Was it done with in an earlier session? Checks that it was the same work."""
        state = self._campaign.state(job.key)
        if state is None:
            return False
        self._check_same(job, state)
        self.spending.note(state)
        if state.ended is None or (again and state.unfit is not None):
            self._states[job.key] = state
            return False
        row = row_of(job.plan.name, job.problem, state)
        self._keep_row(row, state)
        self._rows[job.key] = row
        self._listener.done(row, known=True)
        return True

    def _check_same(self, job: Job, state: RunState) -> None:
        task = job.problem.task
        try:
            if task is None or state.task.content_hash != task.content_hash:
                what = "text"
            else:
                what = differs(state.config, job.plan.config(job.problem))
        except NoProgram:
            what = "program to begin with"
        if what:
            raise BadInput(
                f"{job.problem.name}: the store holds a run of arm {job.plan.name} with another "
                f"{what}, and the two cannot be in one result",
                hint="name another folder: --output FOLDER",
            )

    def _do(self, job: Job) -> None:
        try:
            row = self._solve(job)
        except OutOfTime:
            row = self._unfinished(job)
        except NoProgram as reason:
            row = row_without_run(job.plan.name, job.problem, "incorrect", str(reason))
        except MethodFailed as error:
            row = self._troubled(job, "failed", error.what)
        except UserError as error:
            kind = unfit(error)
            if kind is None:
                self._give_up_all(error)
                return
            row = self._troubled(job, kind, error.what)
        except InternalError as error:
            row = self._troubled(job, "failed", str(error))
        except Exception as error:  # one defect must not cost all other problems
            row = self._troubled(job, "failed", f"{type(error).__name__}: {error}")
        self._keep(job, row)

    def _solve(self, job: Job) -> BenchRow:
        name, problem = job.plan.name, job.problem
        if problem.task is None:
            return row_without_run(name, problem, "broken", problem.why_broken)
        config = job.plan.config(problem)
        state = self._states.get(job.key)
        if state is None or state.unfit is not None:
            found = self._examiner.look_at(problem.task, config.backend)
            if found is not None:
                given_up = self._campaign.give_up(job.key, problem.task, config, *found)
                return row_of(name, problem, given_up)
        return row_of(name, problem, self._search(job, problem.task, config))

    def _search(self, job: Job, task: Task, config: RunConfig) -> RunState:
        def watch(state: RunState) -> tuple[Evaluator, Audience]:
            self._states[job.key] = state
            return self._engine, hear

        def hear(event: Event, state: RunState) -> None:
            self.spending.note(state)
            self._listener.hear(job, event, state)

        return self._campaign.search(job.key, task, config, self._engine, watch=watch)

    def _unfinished(self, job: Job) -> BenchRow:
        return self._troubled(
            job, "unfinished", self.spending.why or "stopped; the next session goes on"
        )

    def _troubled(self, job: Job, status: Status, why: str) -> BenchRow:
        state = self._states.get(job.key)
        if state is None:
            return row_without_run(job.plan.name, job.problem, status, why)
        return row_of(job.plan.name, job.problem, state, (status, why))

    def _give_up_all(self, error: UserError) -> None:
        self._fatal = error
        self._campaign.stop()

    def _keep(self, job: Job, row: BenchRow) -> None:
        state = self._states.pop(job.key, None)
        with self._lock:
            if state is not None:
                self._keep_row(row, state)
            self._rows[job.key] = row
        self._listener.done(row, known=False)
