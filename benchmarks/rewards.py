"""How fast are rewards given, and how far can they be trusted?

The steps of a batch, as a trainer has them: per task one parent and `--children` programs that
compute the same with the same kernels, so that their true gain is 1. Each gain is measured twice:
side by side, in the rounds of one evaluation, and as the quotient of two evaluations, one after the
other. What spreads less around 1 is the better reward.

    python benchmarks/rewards.py [--children 8] [--backend cpp] [--engine ADDRESS] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from pathlib import Path

from common import describe_machine, progress
from honest_programs import BACKENDS, honest_programs, with_mark

from kernel_smith.evaluation.engines import open_engine
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.rewards import rewards
from kernel_smith.records import Candidate, Interval, Options, RewardPair, Sampling, Task

# A trainer needs many rewards soon, rather than few that are exact.
OPTIONS = Options(sampling=Sampling(target=0.02, max_seconds=1.0))


def quotient(engine: Engine, task: Task, parent: Candidate, child: Candidate) -> float | None:
    speedups: list[Interval] = []
    for candidate in (parent, child):
        timing = engine.submit(task, candidate, OPTIONS).result().timing
        if timing is None:
            return None
        speedups.append(timing.speedup)
    return speedups[1].value / speedups[0].value


def spread(gains: list[float]) -> dict[str, float]:
    if not gains:
        raise SystemExit("nothing could be timed: the machine is too noisy")
    errors = [abs(math.log(gain)) for gain in gains]
    return {
        "median": statistics.median(gains),
        "worst": max(gains, key=lambda gain: abs(math.log(gain))),
        "root mean square of the error": math.sqrt(statistics.fmean(e**2 for e in errors)),
    }


def measure(
    engine: Engine, tasks: list[Task], parents: list[Candidate], count: int
) -> dict[str, object]:
    families = [[with_mark(parent, f"child {n}") for n in range(count)] for parent in parents]
    steps = [
        RewardPair(task=index, parent=parent, candidate=child)
        for index, (parent, children) in enumerate(zip(parents, families, strict=True))
        for child in children
    ]
    progress("making the tasks ready")
    for task, parent in zip(tasks, parents, strict=True):
        engine.submit(task, parent, OPTIONS).result()
    progress(f"{len(steps)} steps, side by side")
    begin = time.perf_counter()
    given = rewards(engine, tasks, steps, options=OPTIONS)
    seconds = time.perf_counter() - begin
    quotients = []
    for task, parent, children in zip(tasks, parents, families, strict=True):
        for index, child in enumerate(children):
            progress(f"{task.name}: {index + 1} of {count}, one after the other")
            quotients.append(quotient(engine, task, parent, child))
    covered = [r.gain.low <= 1 <= r.gain.high for r in given if r.gain is not None]
    return {
        "steps": len(steps),
        "rewarded": len(covered),
        "steps per minute": 60 * len(steps) / seconds,
        "lanes": engine.capacity(),
        "gain side by side": spread([r.gain.value for r in given if r.gain is not None]),
        "intervals that hold 1": sum(covered),
        "quotient of two evaluations": spread([q for q in quotients if q is not None]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--children", type=int, default=8)
    parser.add_argument("--backend", choices=BACKENDS, default="cpp")
    parser.add_argument("--engine", help="a service's address; default: this machine")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    programs = honest_programs(chosen.backend)
    tasks, parents = [task for task, _ in programs], [parent for _, parent in programs]
    with open_engine(chosen.engine, chosen.lanes) as engine:
        found = measure(engine, tasks, parents, chosen.children)
    result = {"machine": describe_machine(), "tasks": [task.name for task in tasks], **found}
    progress("")
    print(json.dumps(result, indent=1))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
