"""The built-in CPU suite against eager and torch.compile: one table of what several results hold.

    kernel-smith bench run cpu --method embedded --evaluations 10 -o FIRST      # and perhaps others
    python benchmarks/cpu_suite.py FIRST [OTHER...] --json benchmarks/results/cpu_suite_x86.json
    python benchmarks/cpu_suite.py benchmarks/results/cpu_suite_x86.json        # the table again

A result may be stopped and hold some of the tasks only. Where several hold a task, the last one
counts; the commits that they were made at stand beside the machine.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from kernel_smith.bench.folder import read_result
from kernel_smith.records.bench import BenchRow, Stamp

BASELINES = ("eager", "compile")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    if [path.suffix for path in chosen.results] == [".json"]:
        kept = json.loads(chosen.results[0].read_text())
    else:
        kept = joined(chosen.results)
    if chosen.json:
        chosen.json.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(kept["tasks"]))


def joined(folders: list[Path]) -> dict[str, Any]:
    """What each task came to, and where it was measured."""
    machines: list[dict[str, Any]] = []
    tasks: dict[str, dict[str, Any]] = {}
    for folder in folders:
        result = read_result(folder)
        measured = [row for row in result.rows if row.status == "correct"]
        tasks |= {row.problem: shortened(row, result.stamp) for row in measured}
        machines += [m for m in machines_of(result.stamp) if m not in machines]
    return {"machines": machines, "tasks": dict(sorted(tasks.items()))}


def machines_of(stamp: Stamp) -> list[dict[str, Any]]:
    return [place.environment.model_dump(mode="json") for place in stamp.places]


def shortened(row: BenchRow, stamp: Stamp) -> dict[str, Any]:
    speedups = {
        name: [round(part, 3) for part in (one.value, one.low, one.high)]
        for name, one in row.speedups.items()
    }
    return {"category": row.category, "commit": stamp.commit, **speedups}


def table(tasks: dict[str, dict[str, Any]]) -> str:
    """A line for each task, and the means."""
    rows = [f"| {name} | {' | '.join(map(spelled, pair(one)))} |" for name, one in tasks.items()]
    means = " | ".join(f"{mean(tasks, name):.2f}" for name in BASELINES)
    ahead = " | ".join(counted(tasks, name) for name in BASELINES)
    return "\n".join(
        [
            "| task | times eager | times torch.compile |",
            "|---|---|---|",
            *rows,
            f"| **geometric mean of {len(tasks)}** | {means} |",
            f"| **certainly ahead / behind** | {ahead} |",
        ]
    )


def pair(task: dict[str, Any]) -> list[list[float]]:
    return [task[name] for name in BASELINES]


def spelled(interval: list[float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*interval)


def mean(tasks: dict[str, dict[str, Any]], baseline: str) -> float:
    logarithms = [math.log(task[baseline][0]) for task in tasks.values()]
    return math.exp(sum(logarithms) / len(logarithms))


def counted(tasks: dict[str, dict[str, Any]], baseline: str) -> str:
    ahead = sum(task[baseline][1] > 1 for task in tasks.values())
    behind = sum(task[baseline][2] < 1 for task in tasks.values())
    return f"{ahead} / {behind}"


if __name__ == "__main__":
    main()
