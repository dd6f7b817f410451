"""The chooser in place of the mutator, against the embedded default, at equal evaluations.

    python benchmarks/chooser_runs.py WORK --json results.json [--table TABLE.jsonl] [--tasks 13]
        [--seeds 1] [--minutes 60]

Tasks of the CPU suite, one of each family in turn, are optimized twice with the judge, from the
same first programs: as `kernel-smith optimize` does by default, and with a policy that was fitted
without the task's family and those of its fold. What either run had for its best after 10 and after
40 evaluations is then judged side by side, at full length, so that no figure counts that chose a
winner. Reported is the chooser's over the default's, with a 95% interval from drawing tasks again.
Run it again to continue: policies and runs are kept in WORK, judgements in the file of `--json`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from choices import FOLD_SEED, FOLDS, read_tables, write_policy
from choices_table import BACKEND, tasks_in_turn
from common import describe_machine, progress
from versions import mean_gain, side_by_side

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Budget, Candidate, RunConfig, RunStarted, StepEvaluated, Task
from kernel_smith.runs.campaign import Campaign, Key, OutOfTime
from kernel_smith.runs.config import configure
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store
from kernel_smith.training.choices.families import deal

DEFAULT, CHOOSER = "default", "chooser"
WORKERS = ("tuner", "chooser", "merger", "seed")  # the default's, but for the mutator
SHOWN = (10, 40)


def fitted_policies(work: Path, tasks: list[Task], tables: list[Path]) -> dict[str, Path]:
    """By family of the tasks, a policy that has seen no family of its fold. Folds are those of the
    whole suite, so that they are the same whichever tasks are asked for."""
    suite = {task.family for task in tasks_in_turn([], None)}
    folds = enumerate(deal(suite, FOLDS, FOLD_SEED), 1)
    wanted = {task.family for task in tasks}
    paths = {work / f"policy-{number}.json": fold for number, fold in folds if wanted & {*fold}}
    missing = {path: fold for path, fold in paths.items() if not path.exists()}
    examples = read_tables(tables) if missing else {}
    for path, fold in missing.items():
        progress(f"fitting {path.name}, without {', '.join(fold)}")
        write_policy(path, examples, fold)
    return {family: path.resolve() for path, fold in paths.items() for family in fold}


def config_of(arm: str, task: Task, policy: Path) -> RunConfig:
    budget, choosing = Budget(evaluations=max(SHOWN)), arm == CHOOSER
    config = configure(
        task,
        BACKEND,
        proposers=WORKERS if choosing else None,
        policy=str(policy) if choosing else None,
        rebudget=lambda _: budget,
    )
    # The bests are judged beside each other in the end: another confirmation would say no more.
    return config.model_copy(update={"confirmation": config.options})


def best_after(store: Store, run: str, evaluations: int) -> Candidate | None:
    """What a run would have given, had it ended then; None: nothing that works."""
    events = (event for _, event in store.events(run))
    first = next(events)
    assert isinstance(first, RunStarted)
    state, seen = RunState.begin(first), 0
    for event in events:
        if isinstance(event, StepEvaluated):
            seen += 1
            if seen > evaluations:
                break
        state.apply(event)
    return state.best.candidate if state.best is not None else None


def judged(
    store: Store, runs: dict[str, str], task: Task, engine: LocalPool
) -> dict[str, dict[str, Any]]:
    """The bests of both runs, beside each other."""
    rows = {}
    for evaluations in SHOWN:
        best = {arm: best_after(store, run, evaluations) for arm, run in runs.items()}
        before, after = best[DEFAULT], best[CHOOSER]
        if before is not None and after is not None:
            progress(f"{task.name}: the bests after {evaluations} evaluations")
            rows[str(evaluations)] = side_by_side(task, before, after, engine)
    return rows


def search(
    campaign: Campaign,
    keys: list[Key],
    tasks: dict[str, Task],
    policies: dict[str, Path],
    engine: LocalPool,
) -> None:
    def one(key: Key) -> None:
        task = tasks[key.task]
        progress(f"{key.task}, seed {key.seed}: {key.arm}")
        campaign.search(key, task, config_of(key.arm, task, policies[task.family]), engine)

    for error in campaign.do([partial(one, key) for key in keys if not campaign.ended(key)], 1):
        if not isinstance(error, OutOfTime):
            raise error


def summary(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The mean over tasks; of a task's seeds, their geometric mean."""
    found: dict[str, Any] = {}
    for evaluations in map(str, SHOWN):
        gains = defaultdict(list)
        for label, row in rows.items():
            own = row.get(evaluations, {})
            if own.get("same") or "gain" in own:
                value = 1.0 if own["same"] else own["gain"]["value"]
                gains[label.partition(" ")[0]].append(value)
        if gains:
            means = [statistics.geometric_mean(own) for own in gains.values()]
            known = [{"same": False, "gain": {"value": each}} for each in means]
            pairs = sum(map(len, gains.values()))
            found[evaluations] = mean_gain(known) | {"tasks": len(gains), "pairs": pairs}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="a folder for policies and runs")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--tasks", type=int, default=13, help="so many, one of each family first")
    parser.add_argument("--task", action="append", default=[], dest="names")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long")
    asked = parser.parse_args()
    deadline = time.monotonic() + 60 * asked.minutes
    asked.work.mkdir(parents=True, exist_ok=True)
    chosen = tasks_in_turn(asked.names, None)[: asked.tasks]
    tasks = {task.name: task for task in chosen}
    policies = fitted_policies(asked.work, chosen, asked.table)
    pairs = [(name, seed) for seed in range(asked.seeds) for name in tasks]
    keys = [Key(arm, name, seed) for name, seed in pairs for arm in (DEFAULT, CHOOSER)]
    report: dict[str, Any] = {"machine": describe_machine(), "rows": {}}
    if asked.json.exists():
        report["rows"] = json.loads(asked.json.read_text())["rows"]
    with Store.open(asked.work / "runs.sqlite", create=True) as store, LocalPool(1) as engine:
        search(Campaign(store, deadline), keys, tasks, policies, engine)
        campaign = Campaign(store)
        for name, seed in pairs:
            both = {arm: Key(arm, name, seed) for arm in (DEFAULT, CHOOSER)}
            label = f"{name} {seed}"
            if label in report["rows"] or not all(map(campaign.ended, both.values())):
                continue
            runs = {arm: campaign.known[key].id for arm, key in both.items()}
            report["rows"][label] = judged(store, runs, tasks[name], engine)
            report["chooser over default"] = summary(report["rows"])
            asked.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"\n{len(report['rows'])} of {len(pairs)} pairs: {summary(report['rows'])}")
    if len(report["rows"]) < len(pairs):
        print("next: the same command again")


if __name__ == "__main__":
    main()
