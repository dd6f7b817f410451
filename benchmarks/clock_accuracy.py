"""How far can the judge's timings be trusted?

The reference of this benchmark is itself a C++ kernel. It is compared, by the ordinary route of an
evaluation, with the same kernel (the ratio should be 1) and with one that does 5% more work (it
should be ranked slower). Every run evaluates in a fresh process; every tenth run starts a fresh
judge, so that luck with the reference's process shows as well. `--neighbours` does all of it beside
so many programs that keep a core busy, each number in turn.

    python benchmarks/clock_accuracy.py [--runs 100] [--json results.json]
    python benchmarks/clock_accuracy.py --neighbours 0 1 2 4 --table
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, Task
from kernel_smith.tasks import read_task

RUNS_PER_ENGINE = 10
LABELS = {"itself": 0, "5% more work": 5}  # and how much is added

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


def repeat(task: Task, percent: int, runs: int, options: Options) -> list[Evaluation]:
    """Evaluate the same program again and again, each time in a process of its own."""
    evaluations: list[Evaluation] = []
    candidate = Candidate(source=program("ModelNew", percent))
    while len(evaluations) < runs:
        with LocalEngine() as engine:
            for _ in range(min(RUNS_PER_ENGINE, runs - len(evaluations))):
                evaluations.append(engine.evaluate(task, candidate, options))
                progress(f"{percent}% padding: {len(evaluations)} of {runs} runs")
    return evaluations


def summarise(evaluations: list[Evaluation], workload: str | None) -> dict[str, object]:
    """Ratios of one workload, or of their geometric mean."""
    intervals = []
    for evaluation in evaluations:
        if evaluation.timing is None:
            continue
        if workload is None:
            intervals.append(evaluation.timing.speedup)
        else:
            rows = {w.workload: w for w in evaluation.timing.workloads}
            intervals.append(rows[workload].baselines[0].speedup)
    ratios = [interval.value for interval in intervals]
    count = len(ratios)
    return {
        "runs": len(evaluations),
        "verdicts": {
            e.stage.value: sum(f.stage is e.stage for f in evaluations) for e in evaluations
        },
        "median": statistics.median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
        "within_1_percent": sum(abs(r - 1) <= 0.01 for r in ratios) / count,
        "within_2_percent": sum(abs(r - 1) <= 0.02 for r in ratios) / count,
        "interval_covers_1": sum(i.low <= 1 <= i.high for i in intervals) / count,
        "median_half_width": statistics.median(i.half_width for i in intervals),
        "below_1": sum(r < 1 for r in ratios) / count,
        "surely_below_1": sum(i.high < 1 for i in intervals) / count,
        "surely_above_1": sum(i.low > 1 for i in intervals) / count,
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
        for label in LABELS:
            row = found[label]["geometric mean"]
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
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = Options(sampling=Sampling(target=arguments.target, max_seconds=arguments.max_seconds))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "softmax_kernel.py"
        path.write_text(program("Model", 0) + TASK)
        task = read_task(path)
        results: dict[str, Any] = {"machine": describe_machine(), "options": str(options)}
        runs = dict(zip(LABELS, (arguments.runs, arguments.padded_runs), strict=True))
        found = results["neighbours"] = {}
        for count in arguments.neighbours:
            with neighbours(count):
                found[count] = compare(task, runs, options)
            if arguments.json:
                arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    print(table(results) if arguments.table else json.dumps(results, indent=2))


def compare(task: Task, runs: dict[str, int], options: Options) -> dict[str, Any]:
    names = [workload.name for workload in task.workloads]
    found = {}
    for label, percent in LABELS.items():
        evaluations = repeat(task, percent, runs[label], options)
        found[label] = {
            "geometric mean": summarise(evaluations, None),
            **{name: summarise(evaluations, name) for name in names},
            "seconds_per_evaluation": statistics.median(
                sum(e.seconds.values()) for e in evaluations
            ),
        }
    return found


if __name__ == "__main__":
    main()
