"""Problems whose programs are numbers, arms with a scripted model, and a judge that makes it up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kernel_smith.bench.arms import Plan, Protocol, make_plans
from kernel_smith.bench.folder import Winners
from kernel_smith.bench.runner import Job, Runner
from kernel_smith.bench.suites import Problem
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Budget, Candidate, Event, Reason
from kernel_smith.records.bench import BenchRow
from kernel_smith.runs.campaign import Campaign
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store
from kernel_smith.testing.numbers import speed_of
from kernel_smith.testing.openai_server import Reply
from kernel_smith.testing.trivial import TrivialEngine

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + {number}

def get_inputs():
    return [torch.randn(4)]
"""
PROGRAM = "class ModelNew:\n    def forward(self): ...\n    speed = {}\n"


def answer(speed: float) -> Reply:
    return Reply(f"Change: to {speed}.\n```python\n{PROGRAM.format(speed)}```\n")


def judge(candidate: Candidate) -> float | Reason:
    """Negative numbers are wrong; what is no number is the first look at a problem."""
    try:
        speed = speed_of(candidate)
    except ValueError:
        return Reason.COMPILER_REJECTED
    return speed if speed > 0 else Reason.DECOY_KERNEL if speed < -1 else Reason.WRONG_VALUES


@dataclass
class Watch:
    """A listener that remembers, and may do something at each event."""

    rows: list[BenchRow] = field(default_factory=list)
    known: int = 0
    on_event: Callable[[Event], None] = lambda event: None

    def hear(self, job: Job, event: Event, state: RunState) -> None:
        self.on_event(event)

    def done(self, row: BenchRow, *, known: bool) -> None:
        self.rows.append(row)
        self.known += known


@dataclass
class Bench:
    """Runs arms on problems, in one folder."""

    folder: Path
    problems: list[Problem]
    watch: Watch = field(default_factory=Watch)

    def run(
        self,
        methods: list[str],
        protocol: Protocol,
        engine: Evaluator | None = None,
        told: list[str] | None = None,
        in_all: Budget | None = None,
        at_once: int = 1,
        again: bool = False,
        stop_after: int | None = None,
    ) -> list[BenchRow]:
        """`stop_after`: so many events, as when somebody presses Ctrl-C."""
        plans: list[Plan] = make_plans(methods, told or [], protocol)
        jobs = [Job(plan, problem) for problem in self.problems for plan in plans]
        self.watch = Watch()
        with Store.open(self.folder / "runs.sqlite", create=True) as store:
            campaign = Campaign(store)
            if stop_after is not None:
                left = iter(range(stop_after))
                self.watch.on_event = lambda event: next(left, None) is None and campaign.stop()
            runner = Runner(
                campaign,
                engine or TrivialEngine(judge),
                jobs,
                in_all or Budget(),
                self.watch,
                Winners(self.folder).keep,
            )
            return runner.run(at_once, again=again)
