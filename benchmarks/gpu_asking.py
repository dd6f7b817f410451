"""How much of what an empty batch takes on a GPU is in a batch that has something to do?

    python benchmarks/gpu_asking.py --json gpu_asking.json

The judge subtracts the time of a batch with next to nothing in it. In a longer one the process is
still about its launch while the device is at work already, so less of it may show. Here batches of
one to 32 calls of the same kernel are taken in turns with empty ones, in the reference's process,
which nobody has an interest in deceiving. The line through their times has the time of a call as
its slope, and what is to be subtracted as its beginning.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from gpu_clock import KERNEL, TASK
from gpu_judge import judging

from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.records import Workload
from kernel_smith.tasks import read_task

LENGTHS = (1, 2, 4, 8, 16, 32)


def replays(
    bench: Bench[DeviceParticipant], workload: Workload, calls: int, times: int
) -> tuple[list[float], list[float]]:
    """Walls of as many batches, and of empty ones between them, in microseconds."""
    eager, sets = bench.eager(), bench.prepare(workload).pool.timing_sets()
    bench.enter(eager, workload, calls, timed=True)
    eager.bind(list(islice(sets, calls)))
    refusal = eager.capture()
    assert refusal is None, refusal
    batches, empty = [], []
    for _ in range(times):
        eager.rewrite(list(islice(sets, calls)))
        device_state.quiet().make_cold()
        batches.append(eager.replay().windows.run_wall * 1e6)
        device_state.quiet().make_cold()
        empty.append(eager.run_nothing().run_wall * 1e6)
    eager.unbind()
    return batches, empty


def asked(bench: Bench[DeviceParticipant], workload: Workload, times: int) -> dict[str, Any]:
    found = {calls: replays(bench, workload, calls, times) for calls in LENGTHS}
    walls = [statistics.median(found[calls][0]) for calls in LENGTHS]
    slope, beginning = statistics.linear_regression(LENGTHS, walls)
    empty = statistics.median(wall for _, row in found.values() for wall in row)
    return {
        "workload": workload.name,
        "call_us": round(slope, 3),
        "in_a_batch_us": round(beginning, 2),
        "empty_us": round(empty, 2),
        "off_the_line_us": [
            round(wall - beginning - slope * calls, 2)
            for calls, wall in zip(LENGTHS, walls, strict=True)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=25, help="batches of each length")
    parser.add_argument("--benches", type=int, default=3, help="a process each")
    parser.add_argument("--json", type=Path, default=Path("gpu_asking.json"))
    chosen = parser.parse_args()
    path = Path(tempfile.mkdtemp()) / "chain.py"
    path.write_text(KERNEL.format(name="Model", padding=0) + TASK)
    rows = []
    with judging() as platform:
        for number in range(chosen.benches):
            bench = Bench(read_task(path), platform, 2)
            bench.eager().child.move_to(platform.place.timed)
            for workload in bench.task.workloads[:3]:
                rows.append({"process": number, **asked(bench, workload, chosen.times)})
                print(json.dumps(rows[-1]), flush=True)
            bench.close()
    facts = {"device": describe_device().name, "torch": torch.__version__}
    chosen.json.write_text(json.dumps({"rows": rows, **facts}, indent=1) + "\n")


if __name__ == "__main__":
    main()
