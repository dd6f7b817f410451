"""What do other numbers alone gain, and what do sweeps add to that?

Honest C++ candidates are tuned twice from the same program, for the same number of evaluations:
once with each setting judged for itself, once with settings swept first. The two programs that this
ends with, and the one that it began with, are then timed side by side, in the same rounds: of many
noisy figures the highest one flatters. On a busy machine seconds say little.

    python benchmarks/tuner.py [--evaluations 8] [--programs matmul__packed_tiles ...] \
        [--json results.json]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.tuner import Tuner
from kernel_smith.records import Candidate, Elite, Options, Request, Sampling, Sweep, Task
from kernel_smith.tasks import find_task

CANDIDATES = Path(__file__).parent.parent / "tests" / "honest" / "candidates"
PROGRAMS = (
    "matmul__packed_tiles",
    "cumulative_sum__block_scan",
    "causal_attention__flash_tiles",
    "row_softmax__online_pairs",
    "embedding_bag__prefetched",
    "column_sum__kahan_strips",
    "pairwise_distance__autograd_function",
    "gram_matrix__upper_triangle",
)
SWEEP_SECONDS = 40.0
SHORT = Sampling(target=0.03, unstable_above=1e9, min_rounds=5, max_rounds=12, max_seconds=0.5)
OPTIONS = Options(seeds=2, sampling=SHORT)
FINAL = Options(seeds=2, sampling=Sampling(unstable_above=1e9))


class Tuning:
    """A program tuned for a number of evaluations."""

    def __init__(self, engine: LocalEngine, task: Task, first: Elite, *, sweep: bool) -> None:
        self._engine = engine
        self._task = task
        self._tuner = Tuner(try_out=self._swept if sweep else None)
        self.best = first
        self.evaluations = self.failed = self.configurations = 0
        self.sweep_seconds: list[float] = []
        self.changes: list[str] = []

    def _swept(self, task: Task, parent: Candidate, variants: Sequence[str]) -> Sweep:
        sweep = self._engine.sweep(task, parent, variants, OPTIONS, SWEEP_SECONDS)
        self.sweep_seconds.append(round(sweep.seconds, 1))
        self.configurations += sweep.timed
        return sweep

    def run(self, evaluations: int) -> None:
        while self.evaluations < evaluations:
            asked = Request(task=self._task, backend="cpp", parent=self.best, seed=self.evaluations)
            try:
                proposal = self._tuner.propose(asked)
            except NothingToPropose:
                return
            child = judged(self._engine, self._task, proposal.candidate)
            self._tuner.learn(proposal, child.evaluation)
            self.evaluations += 1
            self.failed += not child.evaluation.ok
            self.changes.append(f"{child.score:.3f}: {proposal.summary}")
            if child.score > self.best.score and self._holds(child):
                self.best = child
            progress(f"{self._task.name}: {self.evaluations} of {evaluations}")

    def _holds(self, child: Elite) -> bool:
        """As in a run: who takes the lead is measured again, beside whom it is taken from."""
        again = gain(self._engine, self._task, child, self.best)
        return again is not None and again["low"] > 1

    def told(self) -> dict[str, Any]:
        return {
            "evaluations": self.evaluations,
            "failed": self.failed,
            "swept": self.configurations,
            "sweep_seconds": self.sweep_seconds,
            "changes": self.changes,
        }


def judged(engine: LocalEngine, task: Task, candidate: Candidate) -> Elite:
    evaluation = engine.evaluate(task, candidate, OPTIONS, fresh=True)
    return Elite(candidate=candidate, evaluation=evaluation)


def gain(engine: LocalEngine, task: Task, one: Elite, other: Elite) -> dict[str, float] | None:
    """How many times as fast one is, timed side by side; None if that cannot be said."""
    if one.candidate == other.candidate:
        return {"value": 1.0, "low": 1.0, "high": 1.0}
    beside = engine.evaluate(task, one.candidate, FINAL, beside=other.candidate, fresh=True).beside
    if beside is None or beside.gain is None:
        return None
    return {name: round(value, 3) for name, value in beside.gain.model_dump().items()}


def compare(engine: LocalEngine, program: str, evaluations: int) -> dict[str, Any]:
    task = find_task(program.partition("__")[0])
    source = (CANDIDATES / f"{program}.py").read_text(encoding="utf-8")
    first = judged(engine, task, Candidate(source=source))
    plain, swept = (Tuning(engine, task, first, sweep=sweep) for sweep in (False, True))
    for tuning in (plain, swept):
        tuning.run(evaluations)
    return {
        "without": plain.told(),
        "with": swept.told(),
        "gain_without": gain(engine, task, plain.best, first),
        "gain_with": gain(engine, task, swept.best, first),
        "with_over_without": gain(engine, task, swept.best, plain.best),
    }


def summed_up(results: dict[str, Any]) -> dict[str, Any]:
    """The geometric mean over programs, with a 95% interval by their spread (normal)."""
    ratios = [one["with_over_without"] for one in results.values()]
    logs = [math.log(ratio["value"]) for ratio in ratios if ratio is not None]
    if len(logs) < 2:
        return {}
    middle = statistics.mean(logs)
    half = 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    ends = {"value": middle, "low": middle - half, "high": middle + half}
    return {
        "programs": len(logs),
        "with_over_without": {name: round(math.exp(end), 3) for name, end in ends.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=8)
    parser.add_argument("--programs", nargs="+", default=PROGRAMS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    with LocalEngine() as engine:
        for program in arguments.programs:
            results[program] = compare(engine, program, arguments.evaluations)
            whole = {"machine": describe_machine(), "mean": summed_up(results)} | results
            if arguments.json:
                arguments.json.write_text(json.dumps(whole, indent=2) + "\n")
    print(json.dumps(whole, indent=2))


if __name__ == "__main__":
    main()
