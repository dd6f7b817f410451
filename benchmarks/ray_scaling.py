"""How well a Ray cluster's devices are kept busy: jobs per second against the ideal.

    python benchmarks/ray_scaling.py

A cluster of real Ray processes on this machine, one node per device. The devices are simulated: an
evaluation holds one for a while and computes nothing, so what is measured is everything around it:
the engine, Ray, and the actors. The ideal is the time that the same evaluations take without gaps.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from common import describe_machine, progress
from ray.cluster_utils import Cluster

from kernel_smith.evaluation.engines.ray_engine import RayEngine
from kernel_smith.evaluation.engines.simulated import SimulatedEngine
from kernel_smith.records import Candidate, Task

_RESULTS = Path(__file__).parent / "results" / "ray_scaling.json"
_OBJECT_STORE = 80 << 20
_START_SECONDS = 120.0
_TASK = Task(name="simulated", source="class Model: ...")


@dataclass(frozen=True)
class Row:
    devices: int
    jobs: int
    seconds: float
    jobs_per_second: float
    ideal_jobs_per_second: float
    efficiency: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=0.5, help="of an evaluation, on average")
    parser.add_argument("--jobs-per-device", type=int, default=40)
    parser.add_argument("--json", type=Path, default=_RESULTS)
    chosen = parser.parse_args()
    rows: list[Row] = []
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _OBJECT_STORE}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes = 0
        for devices in sorted(chosen.devices):
            while nodes < devices:
                progress(f"starting node {nodes + 1} of {devices}")
                cluster.add_node(num_cpus=1, object_store_memory=_OBJECT_STORE)
                nodes += 1
            progress(f"measuring {devices} devices")
            rows.append(measure(cluster.address, devices, chosen.jobs_per_device, chosen.seconds))
            show(rows[-1])
    finally:
        cluster.shutdown()
    machine = {**describe_machine(), "ray": version("ray")}
    result = {
        "machine": machine,
        "seconds_per_evaluation": chosen.seconds,
        "rows": [asdict(row) for row in rows],
    }
    chosen.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(address: str, devices: int, jobs_per_device: int, seconds: float) -> Row:
    candidates = [
        Candidate(source=f"class ModelNew: number = {number}")
        for number in range(devices * jobs_per_device)
    ]
    with RayEngine(f"ray:{address}", on_node=f"simulated:1:{seconds}") as engine:
        wait_for(engine, devices)
        spent = run(engine, candidates)
    # The same evaluations in the same order on devices of this process: no gaps worth mentioning.
    with SimulatedEngine(devices, seconds) as ideal:
        shortest = run(ideal, candidates)
    return Row(
        devices=devices,
        jobs=len(candidates),
        seconds=round(spent, 3),
        jobs_per_second=round(len(candidates) / spent, 2),
        ideal_jobs_per_second=round(len(candidates) / shortest, 2),
        efficiency=round(shortest / spent, 4),
    )


def run(engine: RayEngine | SimulatedEngine, candidates: list[Candidate]) -> float:
    begin = time.perf_counter()
    futures = [engine.submit(_TASK, candidate) for candidate in candidates]
    for future in futures:
        future.result()
    return time.perf_counter() - begin


def wait_for(engine: RayEngine, devices: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while engine.capacity() < devices:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{engine.capacity()} of {devices} devices: {engine.health()}")
        time.sleep(0.1)


def show(row: Row) -> None:
    print(
        f"\r{row.devices:3} devices  {row.jobs_per_second:7.2f} jobs/s"
        f"  of {row.ideal_jobs_per_second:7.2f}  efficiency {row.efficiency:.1%}"
    )


if __name__ == "__main__":
    main()
