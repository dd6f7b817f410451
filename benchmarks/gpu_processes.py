"""Do intervals hold from one process to the next? Whole evaluations of one kernel, over and over.

    python benchmarks/gpu_processes.py --times 12 --json gpu_processes.json

A kernel that is timed against itself shows nothing of what is subtracted from both. So these are
kernels that are several times as fast as eager PyTorch, on all workloads of their tasks: from calls
that are replayed by the hundred to those of which one fills a batch. Every evaluation has a process
of its own. Of each workload is shown how much the speedup and the time of a batch deviate over the
evaluations, and how many of their intervals hold the middle of all.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

import torch

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.records import Candidate, Evaluation, Interval, Options
from kernel_smith.tasks import builtin_tasks

FOLDER = Path(__file__).parent.parent / "tests" / "gpu" / "honest"
KERNELS = ("silu_and_mul_llm__column", "layer_norm_vit__", "add_rms_norm_llm__row")


def evaluate(engine: LocalEngine, path: Path, times: int) -> list[Evaluation]:
    task = next(t for t in builtin_tasks("gpu") if t.name == path.stem.partition("__")[0])
    found = []
    for turn in range(times):
        source = f"{path.read_text()}\n# {turn}\n"
        candidate = Candidate(backend="triton", source=source, name=path.name)
        options = Options(profile=False, time_twins=True)
        evaluation = engine.evaluate(task, candidate, options)
        print(f"{path.stem} {turn + 1}/{times}: {evaluation.stage}", flush=True)
        found.append(evaluation)
    return [evaluation for evaluation in found if evaluation.timing is not None]


def spread(intervals: list[Interval]) -> dict[str, float]:
    middle = statistics.median(interval.value for interval in intervals)
    return {
        "speedup": middle,
        "deviation": statistics.stdev(math.log(interval.value) for interval in intervals),
        "half_width": statistics.median(interval.half_width for interval in intervals),
        "holding": sum(interval.low <= middle <= interval.high for interval in intervals),
    }


def describe(evaluations: list[Evaluation]) -> dict[str, Any]:
    timings = [evaluation.timing for evaluation in evaluations if evaluation.timing is not None]
    rows: dict[str, Any] = {"all": spread([timing.speedup for timing in timings])}
    for index, first in enumerate(timings[0].workloads):
        same = [timing.workloads[index] for timing in timings]
        batches = [w.candidate.p50 * w.calls / w.rounds for w in same]
        rows[first.workload] = {
            **spread([workload.baselines[0].speedup for workload in same]),
            "batch_us": statistics.median(batches) * 1e6,
            "batch_deviation_us": statistics.stdev(batches) * 1e6,
        }
    return {"evaluations": len(timings), "workloads": rows, "each": [row(e) for e in evaluations]}


def row(evaluation: Evaluation) -> dict[str, Any]:
    """One evaluation: what it says of each workload, and how long batches took."""
    assert evaluation.timing is not None
    workloads = {}
    for timed in evaluation.timing.workloads:
        calls, baseline = timed.calls / timed.rounds, timed.baselines[0]
        workloads[timed.workload] = {
            "speedup": rounded(baseline.speedup),
            "batch_us": round(timed.candidate.p50 * calls * 1e6, 1),
            "eager_batch_us": round(baseline.seconds.p50 * calls * 1e6, 1),
            "rounds": timed.rounds,
        }
    speedup = rounded(evaluation.timing.speedup)
    return {"speedup": speedup, "workloads": workloads, "notes": evaluation.notes}


def rounded(interval: Interval) -> list[float]:
    return [round(end, 4) for end in (interval.value, interval.low, interval.high)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--only", nargs="+", default=list(KERNELS), help="parts of kernels' names")
    parser.add_argument("--json", type=Path, default=Path("gpu_processes.json"))
    chosen = parser.parse_args()
    paths = [p for p in sorted(FOLDER.glob("*.py")) if any(k in p.name for k in chosen.only)]
    kernels = {}
    with LocalEngine() as engine:
        for path in paths:
            kernels[path.stem] = describe(evaluate(engine, path, chosen.times))
            for name, row in kernels[path.stem]["workloads"].items():
                print(f"  {name:10}", " ".join(f"{k} {v:.3f}" for k, v in row.items()), flush=True)
    device = describe_device()
    facts = {"device": device.name, "driver": device.driver, "torch": torch.__version__}
    chosen.json.write_text(json.dumps({"kernels": kernels, **facts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
