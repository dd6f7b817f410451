"""Methods of search at equal budget, on made-up landscapes whose optimum is known.

    python benchmarks/methods.py --json results.json [--store runs.sqlite] [--landscapes 12]
        [--seeds 4] [--rounds 60] [--methods islands greedy ...]

Each method searches each landscape with each seed, from the plainest program (best-of-n: from
nothing), with the same worker, one answer at a time. Reported is the speed of the best program
after so many answers, thoughts included, as a share of the optimum's: the geometric mean over
landscapes and seeds, with a 95% interval from drawing landscapes again (bootstrap), and what each
method is worth beside best-of-n on the same landscapes. With `--store` a campaign that was stopped
goes on. Nothing is noisy here: what is compared is what methods ask for, of a worker that knows
little.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from common import describe_machine

from kernel_smith.records import (
    Budget,
    Event,
    Noted,
    Options,
    Proposal,
    RunConfig,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.runs.campaign import Campaign, Key
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.search.methods import METHODS
from kernel_smith.search.plan_edit import PLAN_EDIT
from kernel_smith.store import Store
from kernel_smith.testing.landscape import CHOICES, EDITS, Explorer, Landscape, choices_of, program
from kernel_smith.testing.trivial import TrivialEngine

FROM_NOTHING = ("best-of-n", "one-shot", "paper")
SHOWN = (10, 20, 50, 100, 200)
PLAIN = "best-of-n"
COMPARED = [name for name in METHODS if name not in ("one-shot", "paper", "refinement")]
DRAWS = 2000


def search(campaign: Campaign, key: Key, rounds: int) -> None:
    landscape = Landscape(int(key.task.partition("-")[2]))
    config = RunConfig(
        backend="cpp",
        method=key.arm,
        proposers={"model": 1.0},
        budget=Budget(rounds=rounds),
        confirmation=Options(),
        proposals_in_flight=1,
        settings={PLAN_EDIT: {"edits": EDITS}},
    )
    first = [] if key.arm in FROM_NOTHING else [program((0,) * CHOICES)]
    task = Task(name=key.task, source="class Model: pass")
    config = begin_with(config, task, first, with_seed=False)
    campaign.search(
        key, task, config, TrivialEngine(landscape), lambda state: {"model": Explorer()}
    )


def curve(events: Iterable[Event], key: Key, rounds: int) -> list[float]:
    """The best speed after each answer, as a share of the optimum's. What was dropped was an
    answer, too; those who begin with a program have it before the first."""
    landscape = Landscape(int(key.task.partition("-")[2]))
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
                if event.evaluation.ok:
                    best = max(best, landscape.speed(choices_of(made.candidate)))
                if made.proposer == "model":
                    shares.append(best)
    assert len(shares) == rounds, f"{key}: {len(shares)} answers"
    return [share / landscape.optimum for share in shares]


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
    keys = [
        Key(method, f"landscape-{number}", seed)
        for number in range(chosen.first, chosen.first + chosen.landscapes)
        for seed in range(chosen.seeds)
        for method in chosen.methods
    ]
    curves: dict[Key, list[float]] = {}
    with Store.open(path, create=True) as store:
        campaign = Campaign(store)
        left = [key for key in keys if not campaign.ended(key)]
        work = [partial(search, campaign, key, chosen.rounds) for key in left]
        for error in campaign.do(work, at_once=1):
            raise error
        for key, run in Campaign(store).known.items():
            if key in keys:
                events = (event for _, event in store.events(run.id))
                curves[key] = curve(events, key, chosen.rounds)
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
    settings = {"landscapes": chosen.landscapes, "seeds": chosen.seeds, "rounds": chosen.rounds}
    return {"machine": describe_machine(), **settings, "methods": rows, "beside_plain": beside}


if __name__ == "__main__":
    main()
