"""How many tasks the framework's compiler can seed, and what a seed costs against torch.compile.

Each task of a suite becomes a seed; the seed is loaded from its text alone, compared with the
reference on every workload, and timed against torch.compile in turns on the same inputs (on a GPU
by events around graph replays, elsewhere by wall time). Several processes make all seeds first,
which also fills torch.compile's caches; then they compare them, and whoever times has the device
alone. A ratio above 1 means that the seed is faster.

    python benchmarks/seeds.py --json results.json [--device cuda] [--workers 6] [--minutes 5]

Run it again to continue: what the results hold already is not done twice.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import multiprocessing
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import torch
from common import describe_machine
from torch._inductor.cpu_vec_isa import valid_vec_isa_list

from kernel_smith.errors import UserError
from kernel_smith.evaluation.judge.platform.device_lock import FairLock, lock_of_device
from kernel_smith.proposers.seed import PATIENCE_MINUTES
from kernel_smith.proposers.seed.inside.build import build_seed
from kernel_smith.proposers.seed.inside.comparison import difference
from kernel_smith.proposers.seed.inside.patience import at_most
from kernel_smith.proposers.seed.inside.task_module import load_task
from kernel_smith.records import Task, Workload
from kernel_smith.tasks import builtin_tasks

ROUNDS = 9
ROUND_SECONDS = 0.004
NOISE = 0.03


def make(task: Task, device: str) -> dict[str, Any]:
    """One task's seed, or why there is none. Runs in a worker; must never raise."""
    settle(device)
    began = time.perf_counter()
    row: dict[str, Any] = {"task": task.name}
    try:
        names = [workload.name for workload in task.workloads]
        with at_most(PATIENCE_MINUTES):
            seed = build_seed(task, device, names, lambda what: None)
        # Seeds are made as if there were no vectors, which the compiler would remember.
        valid_vec_isa_list.cache_clear()
        row |= {"kernels": seed.kernels, "library_calls": seed.library_calls}
        row |= {"notes": seed.notes, "source": seed.source}
        warm_compiler(task, device)
    except UserError as error:
        row["refused"] = error.what
    except BaseException as error:
        row["failed"] = f"{type(error).__name__}: {error}"[:500]
    if device == "cuda" and torch.cuda.is_available():
        torch.cuda.empty_cache()
    torch._dynamo.reset()
    return row | {"seconds": round(time.perf_counter() - began, 1)}


def settle(device: str) -> None:
    """In a worker. On a CPU both sides use all cores; beside a GPU they would be in the way."""
    if device == "cuda":
        torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # the compiler warns about its own affairs


def warm_compiler(task: Task, device: str) -> None:
    """Fill torch.compile's caches on disk, so that the process that times finds them."""
    author = load_task(task)
    for workload in task.workloads:
        torch._dynamo.reset()
        with torch.device(device), torch.no_grad():
            torch.compile(author.make_model(workload))(*author.make_inputs(workload))


def load_seed(source: str, folder: Path, name: str) -> Any:
    """The class from the text alone; Triton reads kernels from their file."""
    path = folder / f"{name}_seed.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew


def try_workload(model_new: Any, task: Task, workload: Workload, device: str) -> dict[str, Any]:
    """Compare one workload and time it; the result is a ratio or what is wrong."""
    author = load_task(task)
    with torch.device(device), torch.no_grad():
        torch.manual_seed(1)
        reference = author.make_model(workload)
        seed = model_new(*author.init_inputs(workload))
        seed.load_state_dict(reference.state_dict())
        inputs = author.make_inputs(workload)
        torch._dynamo.reset()
        compiled = torch.compile(reference)
        compiled(*inputs)  # takes long, and needs the device for a moment
        with using(device, alone=False):
            problem = difference(seed(*inputs), reference(*inputs))
            if problem:
                return {"mismatch": problem}
            one = prepare(lambda: compiled(*inputs), device)
            other = prepare(lambda: seed(*inputs), device)
        with using(device, alone=True):
            pairs = [(one(), other()) for _ in range(ROUNDS)]
    times = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return {"compile_us": times[0], "seed_us": times[1], "ratio": times[0] / times[1]}


@contextlib.contextmanager
def using(device: str, *, alone: bool) -> Iterator[None]:
    """Others compile and warm up together, and wait while one of them is timed. On a GPU judges
    wait, too."""
    lock = lock_of_device() if device == "cuda" else FairLock("kernel-smith-seeds")
    lock.acquire(shared=not alone)
    try:
        yield
    finally:
        if device == "cuda":
            torch.cuda.synchronize()
        lock.release()


def prepare(call: Any, device: str) -> Any:
    """A function that measures a call. On a GPU the call is recorded once and replayed."""
    for _ in range(3):
        call()
    if device == "cpu":
        return lambda: wall_time(call)
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        replay = graph.replay
    except RuntimeError:
        torch.cuda.synchronize()
        replay = call  # what synchronises cannot be recorded
    replay()
    return lambda: event_time(replay)


def repeats(seconds: float) -> int:
    return max(1, min(1000, math.ceil(ROUND_SECONDS / max(seconds, 1e-7))))


def wall_time(call: Any) -> float:
    begin = time.perf_counter()
    call()
    count = repeats(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def event_time(replay: Any) -> float:
    count = repeats(between_events(replay, 1) / 1e6)
    return between_events(replay, count)


def between_events(replay: Any, count: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / count


def judge(row: dict[str, Any], task: Task, device: str) -> dict[str, Any]:
    """The row with the comparison and the times of every workload. Runs in a worker."""
    settle(device)
    row["workloads"] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            model_new = load_seed(row["source"], Path(folder), task.name)
            for workload in task.workloads:
                row["workloads"][workload.name] = try_workload(model_new, task, workload, device)
                if device == "cuda":
                    torch.cuda.empty_cache()
    except BaseException as error:
        row["failed"] = f"{type(error).__name__}: {error}"[:500]
    results = row["workloads"].values()
    ratios = [one["ratio"] for one in results if "ratio" in one]
    if ratios and len(ratios) == len(task.workloads):
        row["ratio"] = math.exp(statistics.fmean(map(math.log, ratios)))
    return row


def verdict(row: dict[str, Any]) -> str:
    if "refused" in row:
        return row["refused"].replace("no seed:", "refused:")
    if "failed" in row:
        return f"failed: {row['failed'].splitlines()[0][:160]}"
    wrong = {name: one["mismatch"] for name, one in row["workloads"].items() if "mismatch" in one}
    if wrong:
        return f"mismatch: {wrong}"
    library = f", library: {', '.join(row['library_calls'])}" if row["library_calls"] else ""
    return f"converted, {row['kernels']} kernels, ratio {row['ratio']:.2f}{library}"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
    return {
        "tasks": len(rows),
        "converted": len(ratios),
        "as_fast_as_torch_compile": sum(ratio >= 1 - NOISE for ratio in ratios),
        "refused": sum("refused" in row for row in rows),
        "geometric_mean_ratio": mean,
    }


def save(path: Path, rows: list[dict[str, Any]], device: str) -> None:
    """Replace the file at once: an interrupted run leaves the one before."""
    machine: dict[str, Any] = {**describe_machine(), "device": device}
    if device == "cuda":
        machine["gpu"] = torch.cuda.get_device_name()
    text = json.dumps({"machine": machine, "summary": summary(rows), "rows": rows}, indent=2)
    partial = path.with_suffix(".partial")
    partial.write_text(text + "\n")
    partial.replace(path)


Job = tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]


def rows_of(jobs: dict[str, Job], workers: int, deadline: float) -> Iterator[dict[str, Any]]:
    """Rows as they are ready. A worker that dies takes the others along: they are tried alone."""
    left = dict(jobs)
    for row in rows_of_pool(jobs, workers, deadline):
        del left[row["task"]]
        yield row
    for name, job in left.items():
        if time.monotonic() > deadline:
            return
        rows = list(rows_of_pool({name: job}, 1, deadline))
        yield from rows or [{"task": name, "failed": "its process died"}]


def rows_of_pool(jobs: dict[str, Job], workers: int, deadline: float) -> Iterator[dict[str, Any]]:
    # Forking would copy a process that may have used the GPU.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    futures = [pool.submit(work, *given) for work, given in jobs.values()]
    try:
        for future in as_completed(futures, timeout=max(0.0, deadline - time.monotonic())):
            yield future.result()
    except (BrokenProcessPool, TimeoutError):
        return
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", type=Path, required=True, help="the results, also to go on from")
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=10.0, help="start no task after that")
    parser.add_argument("--task", action="append", help="only this task; may be repeated")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    device = chosen.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("error: no GPU here\nhint: run the CPU suite with --device cpu")
    deadline = time.monotonic() + 60 * chosen.minutes
    known = json.loads(chosen.json.read_text())["rows"] if chosen.json.exists() else []
    rows = {row["task"]: row for row in known}
    tasks = {task.name: task for task in builtin_tasks("gpu" if device == "cuda" else "cpu")}
    wanted = set(chosen.task or tasks) | set(rows)
    to_make: dict[str, Job] = {
        n: (make, (tasks[n], device)) for n in tasks if n in wanted - set(rows)
    }
    for row in rows_of(to_make, chosen.workers, deadline):
        rows[row["task"]] = row
        outcome = "made" if "source" in row else verdict(row)
        print(f"{row['task']:32} {outcome} in {row.get('seconds')} s", flush=True)
        save(chosen.json, list(rows.values()), device)
    to_judge: dict[str, Job] = {
        name: (judge, (row, tasks[name], device))
        for name, row in rows.items()
        if "source" in row and "workloads" not in row
    }
    for row in rows_of(to_judge, chosen.workers, deadline):
        rows[row["task"]] |= row
        print(f"{row['task']:32} {verdict(row)}", flush=True)
        save(chosen.json, list(rows.values()), device)
    finished = [row for row in rows.values() if "source" not in row or "workloads" in row]
    if len(finished) < len(wanted):
        print("out of time; run the same command again for the rest", flush=True)
    print(json.dumps(summary(list(rows.values())), indent=2), flush=True)


if __name__ == "__main__":
    main()
