"""A built-in suite beside eager, torch.compile and max-autotune: one table of what results hold.

    python benchmarks/suite.py cpu -o FIRST                   # or `kernel-smith bench run cpu`
    python benchmarks/suite_table.py FIRST [OTHER...] --json benchmarks/results/suite.json
    python benchmarks/suite_table.py benchmarks/results/suite.json            # the table again

A result may be stopped and hold some of the tasks only. Where several hold a task, the last one
counts; the commits that they were made at stand beside the machine. Of several arms there is a
line each: their means over the tasks that all of them have, and how they do beside the first one,
task by task, with a 95% interval by drawing tasks, and what was measured of them, again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from kernel_smith.bench.folder import read_result
from kernel_smith.bench.intervals import drawn_again, geometric_mean
from kernel_smith.records import Interval
from kernel_smith.records.bench import BenchRow, Stamp

NAMES = {"eager": "eager", "compile": "torch.compile", "max-autotune": "max-autotune"}

Tasks = dict[str, dict[str, Any]]


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
    if not kept.get("arms", kept.get("tasks")):
        sys.exit("nothing was measured to the end yet")
    print(comparison(kept["arms"]) if "arms" in kept else table(kept["tasks"]))


def joined(folders: list[Path]) -> dict[str, Any]:
    """What each task came to, and where it was measured."""
    machines: list[dict[str, Any]] = []
    arms: dict[str, Tasks] = {}
    for folder in folders:
        result = read_result(folder)
        for row in result.rows:
            if row.status == "correct" and row.speedups:
                arms.setdefault(row.arm, {})[row.problem] = shortened(row, result.stamp)
        machines += [m for m in machines_of(result.stamp) if m not in machines]
    found = {arm: dict(sorted(tasks.items())) for arm, tasks in arms.items()}
    only = next(iter(found.values()), {})
    return {"machines": machines} | ({"tasks": only} if len(found) < 2 else {"arms": found})


def machines_of(stamp: Stamp) -> list[dict[str, Any]]:
    return [
        place.environment.model_dump(mode="json")
        | ({} if place.device is None else {"device": place.device.model_dump(mode="json")})
        for place in stamp.places
    ]


def shortened(row: BenchRow, stamp: Stamp) -> dict[str, Any]:
    speedups = {
        name: [round(part, 3) for part in (one.value, one.low, one.high)]
        for name, one in row.speedups.items()
    }
    return {"category": row.category, "commit": stamp.commit, **speedups}


def table(tasks: Tasks) -> str:
    """A line for each task, and the means."""
    names = baselines(tasks)
    heads = [f"times {NAMES[name]}" for name in names]
    rows = [[task, *(spelled(one[name]) for name in names)] for task, one in tasks.items()]
    means = [f"{mean(tasks, name):.2f}" for name in names]
    ahead = [counted([one[name] for one in tasks.values()]) for name in names]
    lines = [
        ["task", *heads],
        *rows,
        [f"**geometric mean of {len(tasks)}**", *means],
        ["**certainly ahead / behind**", *ahead],
    ]
    behind = [task for task, one in tasks.items() if any(one[name][0] < 1 for name in names)]
    return f"{drawn(lines)}\n\nBehind one of them: {', '.join(behind) or 'none'}."


def comparison(arms: dict[str, Tasks]) -> str:
    """A line for each arm, over the tasks that all of them have."""
    common = set.intersection(*(set(tasks) for tasks in arms.values()))
    shared = {arm: {t: tasks[t] for t in sorted(common)} for arm, tasks in arms.items()}
    names = baselines(next(iter(shared.values())))
    first = next(iter(shared))
    heads = [*(f"times {NAMES[name]}" for name in names), "ahead", f"beside `{first}`"]
    lines = [[f"arm, {len(common)} tasks", *heads]]
    for arm, tasks in shared.items():
        means = [f"{mean(tasks, name):.3f}" for name in names]
        nearest = [min((one[name] for name in names), key=min) for one in tasks.values()]
        beside = "1" if arm == first else spelled(paired(tasks, shared[first], names[-1]))
        lines.append([arm, *means, counted(nearest), beside])
    return drawn(lines)


def paired(tasks: Tasks, others: Tasks, baseline: str) -> list[float]:
    """How fast the tasks of one arm are beside those of another, by a baseline of both."""
    ratios = [_ratio(one[baseline], others[task][baseline]) for task, one in tasks.items()]
    found = drawn_again(ratios, geometric_mean)
    return [found.value, found.low, found.high]


def _ratio(one: list[float], other: list[float]) -> Interval:
    """The interval of a quotient, of errors that have nothing to do with each other."""
    value = math.log(one[0] / other[0])
    low = math.hypot(math.log(one[0] / one[1]), math.log(other[2] / other[0]))
    high = math.hypot(math.log(one[2] / one[0]), math.log(other[0] / other[1]))
    return Interval(value=math.exp(value), low=math.exp(value - low), high=math.exp(value + high))


def baselines(tasks: Tasks) -> list[str]:
    return [name for name in NAMES if all(name in one for one in tasks.values())]


def drawn(lines: list[list[str]]) -> str:
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([rows[0], "|" + "---|" * len(lines[0]), *rows[1:]])


def spelled(interval: list[float]) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*interval)


def mean(tasks: Tasks, baseline: str) -> float:
    logarithms = [math.log(task[baseline][0]) for task in tasks.values()]
    return math.exp(sum(logarithms) / len(logarithms))


def counted(intervals: list[list[float]]) -> str:
    ahead = sum(low > 1 for _, low, _ in intervals)
    behind = sum(high < 1 for _, _, high in intervals)
    return f"{ahead} / {behind}"


if __name__ == "__main__":
    main()
