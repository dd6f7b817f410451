"""How fast can this GPU be at best?

Measures what every roofline of an evaluation is held against: the bandwidth of large copies, the
rate of large matrix products by precision, and the time of an empty kernel in a replayed graph.

    python benchmarks/ceilings.py [--json results.json]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from kernel_smith.evaluation.judge.evidence.ceilings import measure_ceilings
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.records import Ceilings


def describe(ceilings: Ceilings, seconds: float) -> str:
    device = ceilings.device
    versions = ", ".join(f"{name} {version}" for name, version in ceilings.versions.items())
    rates = [
        f"  {precision:<5} {rate / 1e12:8.1f} T{'OP' if precision == 'int8' else 'FLOP'}/s"
        for precision, rate in ceilings.flops_per_second.items()
    ]
    return "\n".join(
        [
            f"{device.name}, {device.multiprocessors} multiprocessors, "
            f"{device.l2_bytes >> 20} MiB of L2; {versions}",
            f"  copy  {ceilings.copy_bytes_per_second / 1e12:8.2f} TB/s, read and written",
            *rates,
            f"  empty kernel in a graph: {ceilings.launch_seconds * 1e6:.2f} us",
            f"measured in {seconds:.2f} s",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    describe_device()  # starting CUDA is not measuring
    begin = time.perf_counter()
    ceilings = measure_ceilings()
    print(describe(ceilings, time.perf_counter() - begin))
    if chosen.json:
        chosen.json.write_text(ceilings.model_dump_json(indent=2) + "\n")


if __name__ == "__main__":
    main()
