"""Requests and their made-up evaluations, for tests of the job book."""

from __future__ import annotations

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Candidate, Evaluation, Task
from kernel_smith.records.job import JobRequest

TASK = Task(name="sample", source="class Model: ...", path="/tasks/sample.py")
OTHER_TASK = Task(name="other", source="class Model: ...")


def request(number: int, *, priority: int = 0, task: Task = TASK) -> JobRequest:
    candidate = Candidate(source=f"class ModelNew: number = {number}")
    return JobRequest(task=task, candidate=candidate, priority=priority)


def evaluation(wanted: JobRequest, speedup: float = 2.0) -> Evaluation:
    return made_up(wanted.task, wanted.candidate, speedup)


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now
