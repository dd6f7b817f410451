"""Judge every starting kernel of a suite: is it right on this machine, and by which route?

    python benchmarks/conformance.py [--suite maca] [--backend cuda --backend maca] [--json FILE]

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

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Options, Sampling, Task
from kernel_smith.tasks import builtin_tasks

OPTIONS = Options(
    seeds=1, profile=False, sampling=Sampling(target=0.02, min_rounds=6, max_seconds=0.6)
)


def judge(engine: LocalEngine, task: Task, backend: str) -> dict[str, Any]:
    path = Path(task.starts[backend])
    candidate = Candidate(source=path.read_text(), backend=backend, name=path.name)
    evaluation = engine.evaluate(task, candidate, OPTIONS)
    return {
        "task": task.name,
        "backend": backend,
        "stage": evaluation.stage.value,
        "reason": evaluation.reason,
        "message": evaluation.message,
        "interpreted": evaluation.interpreted,
        "conformance": evaluation.conformance,
        "speedup": evaluation.timing.speedup.value if evaluation.timing else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="maca")
    parser.add_argument("--backend", action="append", help="default: cuda and maca")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    tasks = builtin_tasks(chosen.suite)
    began = time.monotonic()
    rows = []
    with LocalEngine() as engine:
        for backend in chosen.backend or ["cuda", "maca"]:
            for number, task in enumerate(tasks):
                progress(f"{backend}: {number + 1} of {len(tasks)}: {task.name}")
                rows.append(judge(engine, task, backend))
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
