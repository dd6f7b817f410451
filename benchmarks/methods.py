"""Methods of search at equal budget, where the best that can be found is known.

    python benchmarks/methods.py --json results.json [--store runs.sqlite] [--landscapes 12]
        [--seeds 4] [--rounds 60] [--methods islands greedy ...]
    python benchmarks/methods.py --recorded results/training/steps.sqlite --rounds 40 ...

Each method searches each landscape with each seed, with the same worker, one answer at a time, and
from the plainest program (best-of-n: from nothing). Landscapes are made up, or the recorded steps
of the real runs of a store, one for each task; there, all begin with the programs that the runs
began with. Reported is the speed of the best program after so many answers, thoughts included, as a
share of the optimum's: the geometric mean over landscapes and seeds, with a 95% interval from
drawing landscapes again (bootstrap), and what each method is worth beside best-of-n on the same
landscapes. With `--store` a campaign that was stopped goes on. Nothing is noisy here: what is
compared is what methods ask for, of a worker that knows little.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from common import describe_machine, progress

from kernel_smith.proposers.base import Worker
from kernel_smith.records import (
    Budget,
    Candidate,
    Event,
    Noted,
    Options,
    Proposal,
    Reason,
    RunConfig,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.campaign import Campaign, Key
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.presets import settings_of
from kernel_smith.search.methods import METHODS
from kernel_smith.search.plan_edit import PLAN_EDIT
from kernel_smith.store import Store
from kernel_smith.testing.landscape import CHOICES, EDITS, Explorer, Landscape, program
from kernel_smith.testing.recorded import Records, Replayer
from kernel_smith.testing.trivial import Judgement, TrivialEngine
from kernel_smith.trajectories.steps import read_steps

FROM_NOTHING = ("best-of-n", "one-shot", "paper")
SHOWN = (10, 20, 40, 50, 100, 200)
PLAIN = "best-of-n"
COMPARED = [name for name in METHODS if name not in ("one-shot", "paper", "refinement")]
DRAWS = 2000


class Ground(NamedTuple):
    """Where is it searched? What it begins with, who judges, who answers, and what is best."""

    first: list[Candidate]
    judge: Judgement
    make_worker: Callable[[], Worker]
    optimum: float
    edits: dict[str, str]


def made_up(number: int) -> Ground:
    landscape = Landscape(number)
    return Ground([program((0,) * CHOICES)], landscape, Explorer, landscape.optimum, EDITS)


def recorded(store: Path) -> dict[str, Ground]:
    """One for each task of the store."""
    tasks: defaultdict[str, Records] = defaultdict(Records)
    for count, step in enumerate(read_steps([store]), 1):
        tasks[step.task.name].add(step)
        if count % 500 == 0:
            progress(f"{count} steps")
    edits = settings_of(PLAN_EDIT, "cpp")[PLAN_EDIT]["edits"]
    return {
        name: Ground(each.first, each.judge, partial(Replayer, each), each.best_recorded, edits)
        for name, each in sorted(tasks.items())
    }


def search(campaign: Campaign, key: Key, ground: Ground, rounds: int) -> None:
    config = RunConfig(
        backend="cpp",
        method=key.arm,
        proposers={"model": 1.0},
        budget=Budget(rounds=rounds),
        confirmation=Options(),
        proposals_in_flight=1,
        settings={PLAN_EDIT: {"edits": ground.edits}},
    )
    first = [] if key.arm in FROM_NOTHING else ground.first
    task = Task(name=key.task, source="class Model: pass")
    config = begin_with(config, task, first, with_seed=False)
    worker = ground.make_worker()
    campaign.search(key, task, config, TrivialEngine(ground.judge), lambda state: {"model": worker})


def curve(events: Iterable[Event], key: Key, ground: Ground, rounds: int) -> list[float]:
    """The best speed after each answer, as a share of the optimum's. What was dropped was an
    answer, too; those who begin with a program have it before the first; and where nobody had
    anything new, the rest would have gained nothing."""
    best, shares = 0.0, []
    proposed: dict[int, Proposal] = {}
    for event in events:
        match event:
            case StepProposed():
                proposed[event.step] = event.proposal
            case StepDropped() | Noted():
                shares.append(best)
            case StepEvaluated():
                made = proposed[event.step]
                speed = ground.judge(made.candidate)
                best = best if isinstance(speed, Reason) else max(best, speed)
                if made.proposer == "model":
                    shares.append(best)
    assert len(shares) <= rounds, f"{key}: {len(shares)} answers"
    shares += [best] * (rounds - len(shares))
    return [share / ground.optimum for share in shares]


def by_landscape(curves: dict[Key, list[float]], method: str, at: int) -> dict[str, float]:
    """The mean over seeds of the logarithm; a program that is not there is 1%."""
    found: dict[str, list[float]] = {}
    for key, shares in curves.items():
        if key.arm == method:
            found.setdefault(key.task, []).append(math.log(max(shares[at - 1], 0.01)))
    return {task: statistics.fmean(logs) for task, logs in found.items()}


def interval(means: list[float]) -> dict[str, float]:
    rng = random.Random(0)
    drawn = sorted(statistics.fmean(rng.choices(means, k=len(means))) for _ in range(DRAWS))
    ends = {"low": drawn[round(0.025 * DRAWS)], "high": drawn[round(0.975 * DRAWS) - 1]}
    found = {"value": statistics.fmean(means)} | ends
    return {name: round(math.exp(logarithm), 3) for name, logarithm in found.items()}


def in_words(found: dict[str, float]) -> str:
    return f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--first", type=int, default=0, help="the number of the first landscape")
    parser.add_argument("--landscapes", type=int, default=12)
    parser.add_argument("--recorded", type=Path, default=None, help="a store of real runs")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--methods", nargs="+", default=COMPARED)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = compare(chosen.store or Path(folder) / "runs.sqlite", chosen)
    for method, row in report["methods"].items():
        print(f"{method:10s} {'  '.join(f'{at}: {in_words(f)}' for at, f in row.items())}")
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")


def compare(path: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    numbers = range(chosen.first, chosen.first + chosen.landscapes)
    if chosen.recorded:
        grounds = recorded(chosen.recorded)
    else:
        grounds = {f"landscape-{number}": made_up(number) for number in numbers}
    keys = [
        Key(method, name, seed)
        for name in grounds
        for seed in range(chosen.seeds)
        for method in chosen.methods
    ]
    curves: dict[Key, list[float]] = {}
    with Store.open(path, create=True) as store:
        campaign = Campaign(store)
        left = [key for key in keys if not campaign.ended(key)]
        work = [partial(search, campaign, key, grounds[key.task], chosen.rounds) for key in left]
        for error in campaign.do(work, at_once=1):
            raise error
        for key, run in Campaign(store).known.items():
            if key in keys:
                events = (event for _, event in store.events(run.id))
                curves[key] = curve(events, key, grounds[key.task], chosen.rounds)
    rows: dict[str, dict[str, Any]] = {method: {} for method in chosen.methods}
    for method, at in itertools.product(chosen.methods, SHOWN):
        if at <= chosen.rounds:
            mine = by_landscape(curves, method, at)
            rows[method][str(at)] = interval(list(mine.values()))
    beside = {}
    if PLAIN in chosen.methods:
        plain = by_landscape(curves, PLAIN, chosen.rounds)
        for method in chosen.methods:
            mine = by_landscape(curves, method, chosen.rounds)
            beside[method] = interval([mine[task] - plain[task] for task in plain])
    settings = {"landscapes": len(grounds), "seeds": chosen.seeds, "rounds": chosen.rounds}
    return {"machine": describe_machine(), **settings, "methods": rows, "beside_plain": beside}


if __name__ == "__main__":
    main()
