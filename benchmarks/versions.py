"""The embedded default of an earlier version and of this one, with everything else the same.

    git clone . ../before && git -C ../before checkout COMMIT
    python benchmarks/versions.py --before ../before --work build/versions --json results.json

Each version optimizes the first tasks of the CPU suite by itself, without a model, from the same
two programs: the task's starting kernel and what this version makes of the compiler's. So what is
compared is the search, not what it begins with. The two winners of a task are then judged by this
version side by side, in the same rounds. Run it again to continue: what lies in the folder of
`--work` is not done twice.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, Options, Sampling, Task
from kernel_smith.tasks import builtin_tasks

HERE = Path(__file__).parents[1]
COMMAND = "from kernel_smith.cli.entry import main; main()"
WORKERS = {"before": ("tuner", "mutator"), "after": ("tuner", "mutator", "merger")}
FINAL = Options(sampling=Sampling(unstable_above=0.2))
DRAWS = 4000


def call(checkout: Path, *arguments: str) -> None:
    """As a user of that version would. Also 1 and 5 are answers: nothing is shown faster."""
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1, 5):
        raise RuntimeError(f"{' '.join(arguments)}: {done.returncode}\n{done.stderr[-2000:]}")


def first_programs(task: Task, folder: Path) -> list[Path]:
    """A task whose compiled form is the library's own has no seed."""
    seed, none = folder / "seed.py", folder / "no_seed"
    if not seed.exists() and not none.exists():
        try:
            call(HERE, "seed", task.name, "--output", str(seed))
        except RuntimeError as error:
            none.write_text(str(error))
    starts = [Path(task.starts["cpp"])] if "cpp" in task.starts else []
    return [*starts, *([seed] if seed.exists() else [])]


def optimize(
    task: Task, version: str, checkout: Path, folder: Path, chosen: argparse.Namespace
) -> Path:
    winner = folder / f"{version}.py"
    if not winner.exists():
        arguments = ["optimize", task.name, "--evaluations", str(chosen.evaluations)]
        for path in first_programs(task, folder):
            arguments += ["--start", str(path)]
        for name in WORKERS[version]:
            arguments += ["--proposer", name]
        store = folder / f"{version}.sqlite"
        call(checkout, *arguments, "--store", str(store), "--output", str(winner))
    return winner


def compare(task: Task, chosen: argparse.Namespace, engine: LocalPool) -> dict[str, Any]:
    folder = chosen.work / task.name
    folder.mkdir(parents=True, exist_ok=True)
    checkouts = {"before": chosen.before, "after": HERE}
    made = {}
    for version, checkout in checkouts.items():
        progress(f"{task.name}: {version}")
        path = optimize(task, version, checkout.resolve(), folder.resolve(), chosen)
        made[version] = Candidate(backend="cpp", source=path.read_text(), name=path.name)
    return side_by_side(task, made["before"], made["after"], engine)


def side_by_side(
    task: Task, before: Candidate, after: Candidate, engine: LocalPool
) -> dict[str, Any]:
    """One program beside another, in the same rounds, at full length."""
    judged = engine.submit(task, after, FINAL, beside=before).result()
    row: dict[str, Any] = {"same": before.content_hash == after.content_hash}
    if judged.timing is not None:
        row["eager"] = judged.timing.speedup.model_dump()
    if judged.beside is not None:
        row["gain"] = judged.beside.gain.model_dump()
    return row | {"stage": judged.stage.value}


def mean_gain(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Over tasks; 95% by drawing tasks again."""
    logs = [0.0 if row["same"] else math.log(row["gain"]["value"]) for row in rows]
    rng = random.Random(0)
    drawn = sorted(statistics.fmean(rng.choices(logs, k=len(logs))) for _ in range(DRAWS))
    ends = [drawn[round(share * (DRAWS - 1))] for share in (0.025, 0.975)]
    named = zip(("value", "low", "high"), (statistics.fmean(logs), *ends), strict=True)
    return {name: round(math.exp(each), 4) for name, each in named}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="a checkout of another version")
    parser.add_argument("--work", type=Path, required=True, help="a folder for programs and runs")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--tasks", type=int, default=13, help="so many of the suite")
    parser.add_argument("--evaluations", type=int, default=20)
    chosen = parser.parse_args()
    report: dict[str, Any] = {"machine": describe_machine(), "evaluations": chosen.evaluations}
    commit = ["git", "-C", str(chosen.before), "rev-parse", "HEAD"]
    report["before"] = subprocess.check_output(commit, text=True).strip()
    report["tasks"] = {}
    if chosen.json.exists():
        report["tasks"] = json.loads(chosen.json.read_text())["tasks"]
    with LocalPool(1) as engine:
        for task in list(builtin_tasks("cpu"))[: chosen.tasks]:
            if task.name not in report["tasks"]:
                report["tasks"][task.name] = row = compare(task, chosen, engine)
                chosen.json.write_text(json.dumps(report, indent=1) + "\n")
                print(f"\r{task.name}: {row}", flush=True)
    rows = [row for row in report["tasks"].values() if row["same"] or "gain" in row]
    if rows:
        report["gain"] = mean_gain(rows)
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")
        print(f"{len(rows)} tasks: {report['gain']}")


if __name__ == "__main__":
    main()
