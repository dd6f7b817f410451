"""How exact is the clock on this GPU? A kernel timed against itself, and one that is 3% slower.

    python benchmarks/gpu_clock.py --json gpu_clock.json

The reference of the task is the very kernel that the candidate launches, at about 5, 20, 100 and
1000 us. Each run is one measurement of one workload, with the options of an ordinary evaluation,
in one of several candidate processes. The padded candidate works 3% more and is otherwise the same.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from gpu_judge import judging, start

from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.timing.baseline_contests import Trusting
from kernel_smith.evaluation.judge.timing.device_clock import Contest, measure
from kernel_smith.records import Sampling
from kernel_smith.tasks import read_task

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def chain_kernel(x, y, steps, more, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + places)
    for _ in range(steps):
        v = v * 0.999 + 0.001
    w = v
    for _ in range(more):
        w = w * 0.998 + 0.002
    tl.store(y + places, tl.where(w > 1e30, w, v))


class {name}(torch.nn.Module):
    def forward(self, x, steps):
        x = x.contiguous()
        y = torch.empty_like(x)
        chain_kernel[(x.numel() // 1024,)](x, y, steps, steps * {padding} // 1000, BLOCK=1024)
        return y
"""
TASK = """
TASK = {
    "variants": ["small"],
    "workloads": {
        "5us": {"count": 262144, "steps": 200},
        "20us": {"count": 1048576, "steps": 380},
        "100us": {"count": 1048576, "steps": 2050},
        "1000us": {"count": 1048576, "steps": 21000},
    },
}


def get_inputs(count, steps):
    return [torch.randn(count), steps]
"""


def run(
    bench: Bench[DeviceParticipant], candidate: DeviceParticipant, sampling: Sampling
) -> list[dict[str, Any]]:
    """One measurement of each workload."""
    found = []
    for workload in bench.task.workloads:
        sets = bench.prepare(workload).pool.timing_sets()
        contest = Contest(bench, workload, candidate, sets, Trusting())
        bench.enter(candidate, workload, 2)
        candidate.bind([next(sets), next(sets)])
        candidate.run()
        refusal = contest.prepare()
        assert refusal is None, refusal
        begin = time.monotonic()
        result = measure(contest, sampling, "replay")
        ratio = result.log_ratio("eager", "candidate").allowing_for_luck()
        interval = ratio.interval()
        found.append(
            {
                "workload": workload.name,
                "ratio": interval.value,
                "low": interval.low,
                "high": interval.high,
                "rounds": result.rounds,
                "seconds": time.monotonic() - begin,
                "us": 1e6 * statistics.median(result.samples["candidate"].seconds),
            }
        )
    return found


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ratios = [row["ratio"] for row in rows]
    errors = [abs(math.log(ratio)) for ratio in ratios]
    return {
        "runs": len(rows),
        "us": round(statistics.median(row["us"] for row in rows), 2),
        "median": round(statistics.median(ratios), 4),
        "within_2_percent": sum(error <= 0.02 for error in errors) / len(rows),
        "worst": round(max(ratios, key=lambda ratio: abs(math.log(ratio))), 4),
        "interval_covers_1": sum(row["low"] <= 1 <= row["high"] for row in rows) / len(rows),
        "ranked_slower": sum(ratio < 1 for ratio in ratios) / len(rows),
        "interval_below_1": sum(row["high"] < 1 for row in rows) / len(rows),
        "seconds_per_run": round(statistics.mean(row["seconds"] for row in rows), 3),
        "rounds": statistics.median(row["rounds"] for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--padded-runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=100.0, help="stop after so long")
    parser.add_argument("--json", type=Path, default=Path("gpu_clock.json"))
    chosen = parser.parse_args()
    deadline = time.monotonic() + chosen.seconds
    path = Path(tempfile.mkdtemp()) / "chain.py"
    path.write_text(KERNEL.format(name="Model", padding=0) + TASK)
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {"itself": {}, "padded": {}}
    # A step of the second chain takes about 0.8 of one of the first: 38 per mille make 3% more.
    plans = [("itself", 0, chosen.runs), ("padded", 38, chosen.padded_runs)]
    with judging() as platform:
        bench = Bench(read_task(path), platform, 2)
        for kind, padding, runs in plans:
            source = KERNEL.format(name="ModelNew", padding=padding)
            for process in range(chosen.processes):
                contestant = start(bench, "triton", source, process)
                for _ in range(-(-runs // chosen.processes)):
                    if time.monotonic() > deadline - (25 if kind == "itself" else 0):
                        break
                    for row in run(bench, contestant.participant, Sampling()):
                        rows[kind].setdefault(row["workload"], []).append(row)
                contestant.close()
        bench.close()
    report = {
        kind: {name: summary(found) for name, found in by_workload.items()}
        for kind, by_workload in rows.items()
    }
    report |= {"device": describe_device().model_dump(), "torch": torch.__version__}
    chosen.json.write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1), flush=True)


if __name__ == "__main__":
    main()
