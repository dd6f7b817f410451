"""Programs with a function for each of two workloads, whose speeds they name themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import Future

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Candidate, Evaluation, Interval, Options, Reason, Task, Workload

WORKLOADS = ("odd", "wide")
TASK = Task(
    name="two-workloads",
    source="class Model: pass",
    workloads=tuple(Workload(name=name) for name in WORKLOADS),
)

_FUNCTION = "def run_{workload}():\n    return {speed}\n\n\n"
_MODEL = "class ModelNew:\n    def forward(self):\n        return {calls}\n"


def speeds_program(speeds: Mapping[str, float]) -> Candidate:
    """A program that is so many times as fast on each workload."""
    functions = [_FUNCTION.format(workload=name, speed=speeds[name]) for name in WORKLOADS]
    calls = ", ".join(f"run_{name}()" for name in WORKLOADS)
    return Candidate(source="".join(functions) + _MODEL.format(calls=calls))


def speeds_of(candidate: Candidate) -> dict[str, float]:
    found = re.findall(r"def run_(\w+)\(\):\s+return ([\d.]+)", candidate.source)
    return {name: float(speed) for name, speed in found}


def with_speeds(candidate: Candidate, outcome: Mapping[str, float] | Reason) -> Evaluation:
    """An evaluation with a speedup for each workload, whose geometric mean is the program's."""
    if isinstance(outcome, Reason):
        return made_up(TASK, candidate, outcome)
    mean = (outcome["odd"] * outcome["wide"]) ** 0.5
    made = made_up(TASK, candidate, mean)
    assert made.timing is not None
    timings = []
    for each in made.timing.workloads:
        speed = outcome[each.workload]
        interval = Interval(value=speed, low=0.99 * speed, high=1.01 * speed)
        eager = each.baselines[0].model_copy(update={"speedup": interval})
        timings.append(each.model_copy(update={"baselines": (eager,)}))
    timing = made.timing.model_copy(update={"workloads": tuple(timings)})
    return made.model_copy(update={"timing": timing})


class TwoWorkloads:
    """An engine that believes what programs say of themselves."""

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        done: Future[Evaluation] = Future()
        done.set_result(with_speeds(candidate, speeds_of(candidate)))
        return done
