"""Why does the same kernel get another speedup? All rounds of measurements in many processes.

    python benchmarks/gpu_rounds.py silu_and_mul_llm__column layer_norm_vit__ --json rounds.json
    python benchmarks/gpu_rounds.py --backend cuda temperature_softmax_vocab__ --json rounds.json

Kernels are honest ones of the tests, named by parts of their names, and each is measured twice in
each of several processes, by a judge in this process. A line says what came out and in which of its
parts: how long batches took, asking for nothing and handing the device over, in microseconds and
with quartiles, on both sides; how long somebody waited for a core; and what was charged. The file
has all rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from gpu_candidates import CANDIDATES, entries
from gpu_judge import judging, start

from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.timing.baseline_contests import Trusting
from kernel_smith.evaluation.judge.timing.device_clock import Contest, measure
from kernel_smith.evaluation.judge.timing.host_clock import Measurement, Samples
from kernel_smith.records import Sampling, Workload

ROUND = ("batch_us", "asking_us", "handing_over_us", "waiting_us", "charged_us")


def measured(
    bench: Bench[DeviceParticipant], candidate: DeviceParticipant, workload: Workload
) -> dict[str, Any]:
    sets = bench.prepare(workload).pool.timing_sets()
    contest = Contest(bench, workload, candidate, sets, Trusting())
    bench.enter(candidate, workload, 1)
    candidate.bind([next(sets)])
    candidate.run()
    refusal = contest.prepare()
    if refusal is not None:
        return {"workload": workload.name, "refused": refusal}
    begin = time.monotonic()
    found = measure(contest, Sampling(), "replay")
    ratio = found.log_ratio("eager", "candidate").allowing_for_luck().interval()
    return {
        "workload": workload.name,
        "speedup": [round(end, 4) for end in (ratio.value, ratio.low, ratio.high)],
        "calls": contest.length,
        "set_aside": found.set_aside,
        "seconds": round(time.monotonic() - begin, 2),
        "rounds": rounds_of(found),
    }


def rounds_of(found: Measurement) -> dict[str, list[list[float]]]:
    """Of each side, what a round had of each kind. Nothing is ever charged to eager's process."""
    eager = found.samples["eager"]
    asking = [
        window.run_wall - seconds * calls
        for window, seconds, calls in zip(eager.windows, eager.seconds, eager.lengths, strict=True)
    ]
    return {name: rows(own, asking) for name, own in found.samples.items()}


def rows(own: Samples, asking: list[float]) -> list[list[float]]:
    found = []
    for window, seconds, calls, empty in zip(
        own.windows, own.seconds, own.lengths, asking, strict=True
    ):
        charged = seconds * calls - (window.run_wall - empty)
        parts = (window.run_wall, empty, window.switching_wall, window.waited, charged)
        found.append([round(part * 1e6, 1) for part in parts])
    return found


def line(row: dict[str, Any]) -> str:
    if "refused" in row:
        return f"{row['workload']}: not captured: {row['refused']}"
    value, low, high = row["speedup"]
    counted = len(row["rounds"]["candidate"])
    shown = [f"{row['workload']:8} {value:.3f} [{low:.3f}, {high:.3f}]"]
    shown.append(f"{counted} rounds of {row['calls']}, {row['set_aside']} set aside")
    for name, rounds in row["rounds"].items():
        parts = (
            f"{kind[:-3]} {spread(part)}"
            for kind, part in zip(ROUND, zip(*rounds, strict=True), strict=True)
        )
        shown.append(f"{name}: " + ", ".join(parts))
    return "\n      ".join(shown)


def spread(values: tuple[float, ...]) -> str:
    if len(values) < 2:
        return f"{values[0]:.0f}"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="+", help="parts of their names")
    parser.add_argument("--backend", choices=list(CANDIDATES), default="triton")
    parser.add_argument("--processes", type=int, default=6, help="of each kernel")
    parser.add_argument("--minutes", type=float, default=2.0, help="begin no process after that")
    parser.add_argument("--json", type=Path, default=Path("gpu_rounds.json"))
    chosen = parser.parse_args()
    deadline = time.monotonic() + 60 * chosen.minutes
    tasks = {entry.path: entry.task for entry in entries(chosen.backend)}
    honest = [path for path in tasks if path.parent.name == "honest"]
    found = []
    with judging() as platform:
        for path in (p for p in honest if any(part in p.name for part in chosen.kernels)):
            bench = Bench(tasks[path], platform, 2)
            for turn in range(chosen.processes):
                if time.monotonic() > deadline:
                    break
                contestant = start(bench, chosen.backend, path.read_text(), turn)
                for workload in bench.task.workloads * 2:
                    row = measured(bench, contestant.participant, workload)
                    found.append({"kernel": path.stem, "process": turn, **row})
                    print(path.stem, turn, line(row), flush=True)
                contestant.close()
                chosen.json.write_text(json.dumps({"round": ROUND, "measurements": found}) + "\n")
            bench.close()


if __name__ == "__main__":
    main()
