"""Judge every starting kernel of a suite: is it right on this machine, and by which route?

    python benchmarks/conformance.py [--suite maca] [--backend cuda --backend maca] [--lanes 1]
        [--json FILE]

On an NVIDIA GPU, CUDA kernels run natively and MACA kernels for conformance, on all workloads.
Without one both are emulated on the CPU, on the small workloads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, Task
from kernel_smith.tasks import builtin_tasks

OPTIONS = Options(
    seeds=1, profile=False, sampling=Sampling(target=0.02, min_rounds=6, max_seconds=0.6)
)


def start_of(task: Task, backend: str) -> Candidate:
    path = Path(task.starts[backend])
    return Candidate(source=path.read_text(), backend=backend, name=path.name)


def row_of(task: Task, backend: str, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "task": task.name,
        "backend": backend,
        "stage": evaluation.stage.value,
        "reason": evaluation.reason,
        "message": evaluation.message,
        "interpreted": evaluation.interpreted,
        "conformance": evaluation.conformance,
        "seconds": evaluation.seconds,
        "speedup": evaluation.timing.speedup.value if evaluation.timing else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="maca")
    parser.add_argument("--backend", action="append", help="default: cuda and maca")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    tasks = builtin_tasks(chosen.suite)
    began = time.monotonic()
    rows = []
    pairs = [(backend, task) for backend in chosen.backend or ["cuda", "maca"] for task in tasks]
    with LocalPool(chosen.lanes) as engine:
        futures = [engine.submit(task, start_of(task, backend), OPTIONS) for backend, task in pairs]
        for number, ((backend, task), future) in enumerate(zip(pairs, futures, strict=True)):
            progress(f"{number + 1} of {len(pairs)}: {backend} {task.name}")
            rows.append(row_of(task, backend, future.result()))
    progress("")
    for row in rows:
        if row["stage"] != "ok":
            print(
                f"{row['backend']} {row['task']}: {row['stage']} {row['reason']} {row['message']}"
            )
    ends = Counter(f"{row['backend']}: {row['stage']}" for row in rows)
    result = {
        "machine": describe_machine(),
        "ends": ends,
        "seconds": round(time.monotonic() - began, 1),
        "rows": rows,
    }
    print(json.dumps({name: result[name] for name in ("ends", "seconds")}))
    if chosen.json:
        chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
