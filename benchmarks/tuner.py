"""What do other numbers alone gain?

Two honest C++ candidates are tuned, each for a number of evaluations. The values that were tried
are printed with the speedup over eager PyTorch that is certain. In the end the first program and
the best one are measured once more: of many noisy figures the highest one flatters. On a busy
machine the figures say little.

    python benchmarks/tuner.py [--evaluations 10] [--json results.json]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.tuner import Tuner
from kernel_smith.records import Candidate, Elite, Options, Request, Sampling, Task
from kernel_smith.tasks import find_task

CANDIDATES = Path(__file__).parent.parent / "tests" / "honest" / "candidates"
PROGRAMS = {"matmul": "matmul__packed_tiles", "cumulative_sum": "cumulative_sum__rows_side_by_side"}


def elite(engine: LocalEngine, task: Task, candidate: Candidate, options: Options) -> Elite:
    evaluation = engine.evaluate(task, candidate, options, fresh=True)
    return Elite(candidate=candidate, evaluation=evaluation)


def tune(engine: LocalEngine, task: Task, source: str, count: int, options: Options) -> dict:
    tuner = Tuner(patience=count)
    first = best = elite(engine, task, Candidate(source=source), options)
    tried, backend = [], first.candidate.backend
    begin = time.perf_counter()
    for number in range(count):
        try:
            request = Request(task=task, backend=backend, parent=best, seed=number)
            proposal = tuner.propose(request)
        except NothingToPropose:
            break
        child = elite(engine, task, proposal.candidate, options)
        tuner.learn(proposal, child.evaluation)
        reason = child.evaluation.reason
        tried.append(
            {
                "values": proposal.details["values"],
                "change": proposal.summary,
                "speedup": round(child.score, 3),
                "reason": reason.value if reason else None,
            }
        )
        best = max(best, child, key=lambda one: one.score)
        progress(f"{task.name}: {number + 1} of {count}, best {best.score:.2f}")
    seconds = time.perf_counter() - begin
    before = elite(engine, task, first.candidate, options).score
    after = elite(engine, task, best.candidate, options).score
    return {
        "tried": tried,
        "failed": sum(one["reason"] is not None for one in tried),
        "seconds": round(seconds, 1),
        "speedup_before": round(before, 3),
        "speedup_after": round(after, 3),
        "gain": round(after / before, 3) if before else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sampling = Sampling(
        target=0.03, unstable_above=1e9, min_rounds=5, max_rounds=12, max_seconds=0.5
    )
    options = Options(seeds=2, sampling=sampling)
    results: dict[str, object] = {"machine": describe_machine()}
    with LocalEngine() as engine:
        for name, program in PROGRAMS.items():
            source = (CANDIDATES / f"{program}.py").read_text(encoding="utf-8")
            results[name] = tune(engine, find_task(name), source, arguments.evaluations, options)
    text = json.dumps(results, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
