"""How far can the judge's timings be trusted?

The reference of this benchmark is itself a C++ kernel. It is compared, by the ordinary route of an
evaluation, with the same kernel (the ratio should be 1) and with one that does 5% more work (it
should be ranked slower). Every run evaluates in a fresh process; every tenth run starts a fresh
judge, so that luck with the reference's process shows as well. `--neighbours` does all of it beside
so many programs that keep a core busy, each number in turn.

    python benchmarks/clock_accuracy.py [--runs 100] [--json results.json]
    python benchmarks/clock_accuracy.py --neighbours 0 1 2 4 --table

`--cores 0 1` keeps judge, timed processes and neighbours on these two, so that neighbours are
felt on a machine with more; clock_on_pairs.py does so on several pairs at the same time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, Task
from kernel_smith.tasks import read_task

RUNS_PER_JUDGE = 10
LABELS = {"itself": 0, "5% more work": 5}  # and how much is added
ALL = "geometric mean"

PROGRAM = '''
import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns, int64_t work) {
    for (int64_t step = 0; step < work; ++step) {
        const int64_t r = step < rows ? step : step - rows;
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
"""

kernels = cpp(SOURCE)


class NAME(torch.nn.Module):
    def forward(self, x):
        if x.dtype != torch.float32:
            return torch.softmax(x, dim=-1)
        y = torch.empty_like(x)
        rows, columns = x.shape
        kernels.softmax(x, y, rows, columns, rows + rows * PERCENT // 100)
        return y
'''

TASK = """
TASK = {"workloads": {
    "20us": {"rows": 20, "columns": 64},
    "200us": {"rows": 100, "columns": 128},
    "2ms": {"rows": 200, "columns": 640},
}}


def get_inputs(rows, columns):
    return [torch.randn(rows, columns)]
"""


def program(name: str, percent: int) -> str:
    return PROGRAM.replace("NAME", name).replace("PERCENT", str(percent))


class Row(NamedTuple):
    """One evaluation: beside how many neighbours, of what, and how it ended."""

    neighbours: int
    label: str
    stage: str
    seconds: float
    speedups: dict[str, tuple[float, float, float]]
    """By workload, and of all together: value, low and high."""


def row_of(count: int, label: str, evaluation: Evaluation) -> Row:
    speedups = {}
    if evaluation.timing is not None:
        found = {w.workload: w.baselines[0].speedup for w in evaluation.timing.workloads}
        found[ALL] = evaluation.timing.speedup
        speedups = {name: (each.value, each.low, each.high) for name, each in found.items()}
    seconds = sum(evaluation.seconds.values())
    return Row(count, label, evaluation.stage.value, seconds, speedups)


def repeat(
    task: Task, label: str, runs: int, options: Options, count: int, until: float
) -> Iterator[Row]:
    """Evaluate the same program again and again, each time in a process of its own."""
    candidate = Candidate(source=program("ModelNew", LABELS[label]))
    for first in range(0, runs, RUNS_PER_JUDGE):
        with LocalEngine() as engine:
            for number in range(first, min(first + RUNS_PER_JUDGE, runs)):
                if time.monotonic() > until:
                    return
                progress(f"{count} neighbours, against {label}: {runs - number} runs left")
                yield row_of(count, label, engine.evaluate(task, candidate, options))


def summarise(rows: list[Row], workload: str) -> dict[str, object]:
    """Ratios of one workload, or of their geometric mean."""
    speedups = [row.speedups[workload] for row in rows if row.speedups]
    ratios = [value for value, _, _ in speedups]
    count = len(ratios)
    return {
        "runs": len(rows),
        "verdicts": dict(Counter(row.stage for row in rows)),
        "median": statistics.median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
        "within_1_percent": sum(abs(r - 1) <= 0.01 for r in ratios) / count,
        "within_2_percent": sum(abs(r - 1) <= 0.02 for r in ratios) / count,
        "interval_covers_1": sum(low <= 1 <= high for _, low, high in speedups) / count,
        "median_half_width": statistics.median((high - low) / 2 for _, low, high in speedups),
        "below_1": sum(r < 1 for r in ratios) / count,
        "surely_below_1": sum(high < 1 for _, _, high in speedups) / count,
        "surely_above_1": sum(low > 1 for _, low, _ in speedups) / count,
    }


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """While so many other programs keep a core busy."""
    command = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def table(results: dict[str, Any]) -> str:
    lines = [
        "| busy neighbours | against | runs | ratio: median (range) | interval covers 1 "
        "| surely slower / faster | undecided |",
        "|---|---|---|---|---|---|---|",
    ]
    for count, found in results["neighbours"].items():
        for label in filter(found.__contains__, LABELS):
            if ALL not in found[label]:
                lines.append(f"| {count} | {label} | nothing was timed | | | | |")
                continue
            row = found[label][ALL]
            undecided = 1 - row["surely_below_1"] - row["surely_above_1"]
            lines.append(
                f"| {count} | {label} | {row['runs']} | {row['median']:.3f} ({row['least']:.3f} to "
                f"{row['greatest']:.3f}) | {row['interval_covers_1']:.0%} "
                f"| {row['surely_below_1']:.0%} / {row['surely_above_1']:.0%} | {undecided:.0%} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--padded-runs", type=int, default=100)
    parser.add_argument("--target", type=float, default=0.01)
    parser.add_argument("--max-seconds", type=float, default=4.0)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0])
    parser.add_argument("--minutes", type=float, default=600.0, help="start no run after that")
    parser.add_argument("--cores", type=int, nargs="+", help="the only ones that are used")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--json", type=Path, help="the results, also to go on from")
    arguments = parser.parse_args()
    if arguments.cores:
        os.sched_setaffinity(0, arguments.cores)  # judges and neighbours inherit it
    until = time.monotonic() + 60 * arguments.minutes
    options = Options(sampling=Sampling(target=arguments.target, max_seconds=arguments.max_seconds))
    asked = dict(zip(LABELS, (arguments.runs, arguments.padded_runs), strict=True))
    rows = earlier(arguments.json)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "softmax_kernel.py"
        path.write_text(program("Model", 0) + TASK)
        task = read_task(path)
        for count, (label, runs) in itertools.product(arguments.neighbours, asked.items()):
            done = sum((row.neighbours, row.label) == (count, label) for row in rows)
            with neighbours(count):
                for row in repeat(task, label, runs - done, options, count, until):
                    rows.append(row)
                    write(arguments.json, rows, options)
    found = results_of(rows, options)
    print(table(found) if arguments.table else json.dumps(found["neighbours"], indent=2))


def earlier(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [Row(*row) for row in json.loads(path.read_text())["rows"]]


def write(path: Path | None, rows: list[Row], options: Options) -> None:
    if path is not None:
        text = json.dumps({**results_of(rows, options), "rows": rows})
        path.write_text(text + "\n")


def results_of(rows: list[Row], options: Options) -> dict[str, Any]:
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row.neighbours, {}).setdefault(row.label, []).append(row)
    return {
        "machine": describe_machine(),
        "options": str(options),
        "neighbours": {
            count: {label: summary(some) for label, some in labels.items()}
            for count, labels in sorted(found.items())
        },
    }


def summary(rows: list[Row]) -> dict[str, Any]:
    names = next((list(row.speedups) for row in rows if row.speedups), [])
    seconds = statistics.median(row.seconds for row in rows)
    return {**{n: summarise(rows, n) for n in names}, "seconds_per_evaluation": seconds}


if __name__ == "__main__":
    main()
