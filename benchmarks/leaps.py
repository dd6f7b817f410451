"""Larger steps to learn from: programs of a series are told again as changes of earlier ones.

    python benchmarks/leaps.py --told results/training/told --store steps_leaps.sqlite

Whoever writes a series takes one small step after the other, and a model that learns from it does
the same. Here every second program of a series is told to a run of its own, then every third, and
so on: each as a change of the best before it, measured as any other. Run it again to continue.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from optimize_suite import Series, tell_all, told_programs
from training_runs import BACKEND, say

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, StepEvaluated
from kernel_smith.store import Store
from kernel_smith.tasks import builtin_tasks


def leaps(series: Series) -> Iterator[Series]:
    """Every second program, every third, ... from each of the first on."""
    for stride in range(2, len(series)):
        for first in range(stride):
            kept = range(first, len(series), stride)
            if len(kept) > 1:
                yield [series[first], *(leap(series[a + 1 : b + 1]) for a, b in pairwise(kept))]


def leap(steps: Series) -> tuple[Candidate, str]:
    """The last of them, which holds the changes of all."""
    return steps[-1][0], ", ".join(change for _, change in steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--told", type=Path, required=True, help="a folder of series")
    parser.add_argument("--store", type=Path, required=True)
    chosen = parser.parse_args()
    with Store.open(chosen.store, create=True) as store, LocalPool(1) as engine:
        done = {tuple(judged(store, summary.id)) for summary in store.runs()}
        for task in builtin_tasks("cpu"):
            if not (chosen.told / task.name).is_dir():
                continue
            for series in leaps(told_programs(chosen.told / task.name, BACKEND)):
                if tuple(program.content_hash for program, _ in series) in done:
                    continue
                state = tell_all(series, task, store, engine)
                best = f"{state.best.score:.2f}" if state.best else "nothing"
                say(f"{task.name}: {' -> '.join(p.name for p, _ in series)}: best {best}")


def judged(store: Store, run: str) -> Iterator[str]:
    """The hashes of its programs: a run that was killed lacks some, and is told anew."""
    for _, event in store.events(run):
        if isinstance(event, StepEvaluated):
            yield event.evaluation.candidate_hash


if __name__ == "__main__":
    main()
