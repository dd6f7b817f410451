"""Which of the mutator's C++ edits pay? Each is applied by itself to the suite's starting kernels.

Every edit is applied at a few of its sites, and the judge decides. Per edit the table says how
often it was applied, compiled, gave right results, and made the kernel at least 5 % faster; `best`
is the largest ratio of a changed kernel's speedup to its parent's, and where that was. A ratio that
pays is measured once more, parent and changed kernel in turns, and the smaller one counts.

    python benchmarks/mutator.py [--tasks 39] [--sites 4] [--json results.json] [TASK ...]

Run it again with the same file to continue: tasks that it holds already are not done twice.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.mutator import EDITS, Edit, Site
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, Stage, Task
from kernel_smith.tasks import builtin_tasks, find_task

QUICK = Options(
    seeds=2,
    sampling=Sampling(target=0.02, unstable_above=1e9, min_rounds=5, max_rounds=20, max_seconds=1),
)
PAYS = 1.05
NOT_COMPILED = (Stage.SCREENED_OUT, Stage.COMPILE_ERROR)


def speedup(evaluation: Evaluation) -> float:
    timed = evaluation.ok and evaluation.timing is not None
    return evaluation.timing.speedup.value if timed and evaluation.timing else 0.0


def chosen_sites(edit: Edit, source: str, most: int) -> list[Site]:
    """A few sites, and the same ones every time."""
    sites = edit.sites(source)
    return random.Random(edit.name).sample(sites, min(most, len(sites)))


def measured(engine: LocalEngine, task: Task, source: str) -> Evaluation:
    return engine.evaluate(task, Candidate(source=source), QUICK, fresh=True)


def try_task(engine: LocalEngine, task: Task, most: int) -> list[dict[str, Any]]:
    """One row per edit and site."""
    source = Path(task.starts["cpp"]).read_text(encoding="utf-8")
    parent = speedup(measured(engine, task, source))
    rows = []
    for edit in EDITS:
        for site in chosen_sites(edit, source, most) if "cpp" in edit.backends else []:
            progress(f"{task.name}: {edit.name}")
            changed = edit.apply(source, site)
            evaluation = measured(engine, task, changed)
            ratio = speedup(evaluation) / parent
            if ratio > PAYS:
                parent = speedup(measured(engine, task, source)) or parent
                ratio = min(ratio, speedup(measured(engine, task, changed)) / parent)
            rows.append(
                {
                    "task": task.name,
                    "edit": edit.name,
                    "site": str(site),
                    "compiled": evaluation.stage not in NOT_COMPILED,
                    "correct": evaluation.ok,
                    "reason": evaluation.reason.value if evaluation.reason else "",
                    "ratio": ratio,
                }
            )
    return rows


def print_table(rows: list[dict[str, Any]]) -> None:
    by_edit = defaultdict(list)
    for row in rows:
        by_edit[row["edit"]].append(row)
    print(f"\n{'edit':24} applied compiled correct faster   best")
    for edit in EDITS:
        own = by_edit.get(edit.name)
        if not own:
            continue
        best = max(own, key=lambda row: row["ratio"])
        counts = (len(own), sum(r["compiled"] for r in own), sum(r["correct"] for r in own))
        faster = sum(row["ratio"] > PAYS for row in own)
        print(
            f"{edit.name:24} {counts[0]:7} {counts[1]:8} {counts[2]:7} {faster:6} "
            f"{best['ratio']:6.2f} {best['task']}, {best['site']}"
        )
    paying = sum(any(row["ratio"] > PAYS for row in own) for own in by_edit.values())
    print(f"\n{paying} edits pay somewhere, of {len(by_edit)} that apply somewhere")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="TASK")
    parser.add_argument("--tasks", type=int, default=39, help="the first so many of the suite")
    parser.add_argument("--sites", type=int, default=4, help="most sites per edit and task")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tasks = [find_task(name) for name in given.names] or builtin_tasks()[: given.tasks]
    known = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    done: dict[str, list[dict[str, Any]]] = known.get("tasks", {})
    with LocalEngine() as engine:
        for task in tasks:
            if task.name in done:
                continue
            done[task.name] = try_task(engine, task, given.sites)
            if given.json:
                text = json.dumps({"machine": describe_machine(), "tasks": done}, indent=1)
                given.json.write_text(text)
    print_table([row for rows in done.values() for row in rows])


if __name__ == "__main__":
    main()
