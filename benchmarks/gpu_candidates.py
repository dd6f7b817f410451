"""Judge a mixed set of GPU candidates on this GPU: how they end, and how many a minute.

    python benchmarks/gpu_candidates.py --lanes 4 --json results.jsonl
    python benchmarks/gpu_candidates.py --lanes 4 --single --json results.jsonl
    python benchmarks/gpu_candidates.py --backend cuda --json results.jsonl

The set is that of the tests for the backend: honest kernels of many kinds over tens of tasks, and
cheats, crashes, hangs and memory hogs, which are judged without the static screen. Every line is
written when its candidate is done, so a run that is cut short keeps what it has. The last line sums
up: also how an honest candidate fared before all others (which warms the lanes) and after them, and
how much of the device's memory was free before the judges started and when they were gone.

Our tasks have three or four workloads, where other suites have problems of a single size. To
compare speeds of judging with theirs, `--single` leaves each task its largest workload only.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.records import (
    Candidate,
    Evaluation,
    Limits,
    Options,
    Sampling,
    Stage,
    Task,
    Workload,
)
from kernel_smith.tasks import builtin_tasks, read_task

FOLDER = Path(__file__).parent.parent / "tests" / "gpu"
CANDIDATES = {"triton": FOLDER, "cuda": FOLDER / "cuda"}
SAMPLING = Sampling(target=0.02, min_rounds=6, max_rounds=100, max_seconds=0.6)
WITNESS = "row_softmax__"
LIMITS = Limits(load_seconds=20, call_seconds=5, compile_seconds=30)


class Entry(NamedTuple):
    name: str
    task: Task
    path: Path
    ends: tuple[str, ...]


def entries(backend: str) -> Iterator[Entry]:
    """Honest candidates, which must end ok, and cheats, whose first lines say how they may end."""
    tasks = {task.name: task for task in builtin_tasks("gpu")}
    tasks |= {path.stem: read_task(path) for path in sorted((FOLDER / "tasks").glob("*.py"))}
    for path in sorted((CANDIDATES[backend] / "exploits").glob("*.py")):
        lines = path.read_text().splitlines()[:4]
        header = dict(line.removeprefix("# ").split(": ", 1) for line in lines)
        yield Entry(path.stem, tasks[header["task"]], path, tuple(header["expect"].split(", ")))
    for path in sorted((CANDIDATES[backend] / "honest").glob("*.py")):
        task = tasks[path.stem.partition("__")[0]]
        yield Entry(path.stem, task, path, ("ok/faster", "ok/slower", "ok/same"))


def with_largest_workload(entry: Entry) -> Entry:
    def size(workload: Workload) -> int:
        return math.prod(n for n in workload.params.values() if isinstance(n, int))

    largest = max(entry.task.workloads, key=size)
    return entry._replace(task=entry.task.model_copy(update={"workloads": (largest,)}))


def end_of(evaluation: Evaluation) -> str:
    if evaluation.stage is not Stage.OK:
        return f"{evaluation.stage}/{evaluation.reason}"
    assert evaluation.timing is not None
    speedup = evaluation.timing.speedup
    return "ok/slower" if speedup.high < 1 else "ok/faster" if speedup.low > 1 else "ok/same"


def judge(entry: Entry, evaluation: Evaluation, seconds: float) -> dict[str, Any]:
    end = end_of(evaluation)
    timing = evaluation.timing
    return {
        "candidate": entry.name,
        "task": entry.task.name,
        "end": end,
        "expected": end in entry.ends,
        "at": round(seconds, 2),
        "speedup": None if timing is None else timing.speedup.model_dump(),
        "seconds": {name: round(spent, 3) for name, spent in evaluation.seconds.items()},
        "bound": [f"{r.workload}: {r.bound} {r.share:.2f}" for r in evaluation.rooflines],
        "message": "" if end in entry.ends else f"{evaluation.message}\n{evaluation.log}"[-1500:],
        "notes": evaluation.notes,
    }


def judge_witness(pool: LocalPool, backend: str, moment: str, options: Options) -> dict[str, Any]:
    """The same honest candidate on every lane, whatever else has happened; what one of them says.

    Lanes that have judged something are warm.
    """
    witness = next(entry for entry in entries(backend) if entry.name.startswith(WITNESS))
    futures = []
    for lane in range(pool.capacity()):
        source = f"{witness.path.read_text()}\n# {moment} {lane}\n"
        candidate = Candidate(backend=backend, source=source, name=witness.path.name)
        futures.append(pool.submit(witness.task, candidate, options))
    row = [judge(witness, future.result(), 0.0) for future in futures].pop()
    return {"end": row["end"], "speedup": row["speedup"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=list(CANDIDATES), default="triton")
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--every", type=int, default=1, help="only every n-th candidate")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of candidates' names")
    parser.add_argument("--single", action="store_true", help="one workload per task")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--profile", action="store_true", help="list the kernels, too")
    parser.add_argument("--json", type=Path, default=Path("gpu_candidates.jsonl"))
    chosen = parser.parse_args()
    wanted = [e for e in entries(chosen.backend) if any(part in e.name for part in chosen.only)]
    wanted = wanted[:: chosen.every]
    if chosen.single:
        wanted = [with_largest_workload(entry) for entry in wanted]
    options = Options(
        seeds=2, screen=False, sampling=SAMPLING, limits=LIMITS, profile=chosen.profile
    )
    deadline = time.monotonic() + 60 * chosen.minutes
    free, _ = torch.cuda.mem_get_info()
    with chosen.json.open("a") as file, LocalPool(chosen.lanes) as pool:
        before = judge_witness(pool, chosen.backend, "before", options)
        begin = time.monotonic()
        futures: dict[Future[Evaluation], Entry] = {}
        for entry in wanted:
            text = entry.path.read_text()
            candidate = Candidate(backend=chosen.backend, source=text, name=entry.path.name)
            futures[pool.submit(entry.task, candidate, options)] = entry
        rows = []
        for future in as_completed(futures, timeout=60 * chosen.minutes + 600):
            entry, spent = futures[future], time.monotonic() - begin
            try:
                row = judge(entry, future.result(), spent)
            except Exception as error:
                row = {"candidate": entry.name, "end": "our fault", "expected": False}
                row["message"] = f"{type(error).__name__}: {error}"[-1500:]
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
            mark = "  " if row["expected"] else "!!"
            shown = str(row["message"])[-300:].replace("\n", " | ")
            print(f"{mark} {spent:6.1f} {entry.name}: {row['end']} {shown}", flush=True)
            if time.monotonic() > deadline:
                for waiting in futures:
                    waiting.cancel()
                break
        total = time.monotonic() - begin
        after = judge_witness(pool, chosen.backend, "after", options)
        pool.close()
        timed = sum(row.get("seconds", {}).get("timing", 0.0) for row in rows)
        summary = {
            "backend": chosen.backend,
            "lanes": chosen.lanes,
            "single": chosen.single,
            "evaluations": len(rows),
            "as_expected": sum(row["expected"] for row in rows),
            "seconds": round(total, 1),
            "seconds_per_evaluation": round(total / max(len(rows), 1), 3),
            "evaluations_per_minute": round(60 * len(rows) / total, 1),
            "share_of_time_with_the_device_alone": round(timed / total, 3),
            "ends": Counter(str(row["end"]).partition("/")[0] for row in rows),
            "witness": {"before": before, "after": after},
            "free_gib": [round(f / 2**30, 2) for f in (free, torch.cuda.mem_get_info()[0])],
            "device": describe_device().name,
            "torch": torch.__version__,
        }
        print(json.dumps(summary), file=file, flush=True)
        print(json.dumps(summary, indent=1), flush=True)


if __name__ == "__main__":
    main()
