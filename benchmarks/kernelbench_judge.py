"""Judge right programs for KernelBench problems at their published sizes, on this GPU.

    python benchmarks/kernelbench_judge.py CHECKOUT --json results.jsonl
    python benchmarks/kernelbench_judge.py CHECKOUT --problems 2:12 1:23 --again --json ...jsonl
    python benchmarks/kernelbench_judge.py CHECKOUT --problems 2:12 1:23 --seeds made --json ...
    python benchmarks/kernelbench_judge.py CHECKOUT --lanes 4 --sample 40 --json results.jsonl
    python benchmarks/kernelbench_judge.py CHECKOUT --leave-free 24 --problems 2:12 --json ...

CHECKOUT is a clone of KernelBench. The program is the problem's own reference, whose result an
authored Triton kernel copies, or, with `--seeds FOLDER`, what torch.compile makes of it (made and
kept there, before anything is timed). A line is written for every problem when it is done: how it
ended, the seconds of each step, and by how much the memory in use on the device rose, beside what
one call takes. Problems that are in the file already are left out, so a run can be continued.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from kernel_smith.errors import UserError
from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.inputs.footprint import measure
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.proposers.seed import make_seed
from kernel_smith.records import Candidate, Evaluation, Options, Task
from kernel_smith.tasks import read_task, with_precision

GIB = 1 << 30
LEVELS = (1, 2, 3)
SETTLING_SECONDS = 0.25  # until processes of the evaluation before are gone, and others are ready

# A candidate must have a kernel of its own that matters: here it copies the reference's result.
COPY = """

import triton
import triton.language as tl


@triton.jit
def copy_kernel(source, target, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    tl.store(target + offsets, tl.load(source + offsets, mask=inside), mask=inside)


def copied(result):
    if isinstance(result, (tuple, list)):
        return type(result)(copied(part) for part in result)
    result = result.contiguous()
    target = torch.full_like(result, 7)  # and not what freed memory happens to hold
    if result.numel():
        copy_kernel[(triton.cdiv(result.numel(), 4096),)](result, target, result.numel(), 4096)
    return target


class ModelNew(Model):
    def forward(self, *arguments):
        return copied(super().forward(*arguments))
"""

HOLD = """
import sys, time, torch
free, _ = torch.cuda.mem_get_info()
held = torch.empty(free - int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
print("holding", flush=True)
sys.stdin.readline()
"""


class Problem(NamedTuple):
    name: str  # such as 1:23
    task: Task


class Watch:
    """Follows how much of the device's memory is in use."""

    def __init__(self) -> None:
        self._peak = 0
        self._over = threading.Event()
        torch.zeros(1, device="cuda")
        self._base = used()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.002):
            self._peak = max(self._peak, used())

    def close(self) -> None:
        self._over.set()
        self._thread.join()

    def start(self) -> None:
        self._peak = 0

    def peak(self) -> float:
        """In GiB, beside what was in use before there was an engine."""
        return round((self._peak - self._base) / GIB, 2)


def used() -> int:
    free, total = torch.cuda.mem_get_info()
    return total - free


def find_problems(checkout: Path, precision: str) -> list[Problem]:
    root = checkout / "KernelBench" if (checkout / "KernelBench").is_dir() else checkout
    found = []
    for level in LEVELS:
        files = (root / f"level{level}").glob("[0-9]*_*.py")
        for path in sorted(files, key=lambda file: int(file.name.partition("_")[0])):
            number = path.name.partition("_")[0]
            found.append(Problem(f"{level}:{number}", with_precision(read_task(path), precision)))
    return found


def program(problem: Problem, seeds: Path | None, mark: str) -> Candidate:
    """Raises `UserError` where the compiler's output cannot be a candidate."""
    if seeds is None:
        source = problem.task.source + COPY
    else:
        path = seeds / f"{problem.name.replace(':', '_')}.py"
        if not path.exists():
            seeds.mkdir(exist_ok=True, parents=True)
            path.write_text(make_seed(problem.task, "cuda").source)
        source = path.read_text()
    return Candidate(source=f"{source}\n# {mark}\n", name="candidate.py", backend="triton")


def describe(problem: Problem, evaluation: Evaluation, wall: float) -> dict[str, Any]:
    timing = evaluation.timing
    return {
        "problem": problem.name,
        "task": problem.task.name,
        "end": evaluation.stage if evaluation.ok else f"{evaluation.stage}/{evaluation.reason}",
        "message": evaluation.message,
        "wall": round(wall, 2),
        "seconds": {name: round(spent, 3) for name, spent in evaluation.seconds.items()},
        "speedup": None if timing is None else timing.speedup.model_dump(),
        "notes": evaluation.notes,
    }


def judge(pool: LocalPool, problem: Problem, candidate: Candidate) -> dict[str, Any]:
    begin = time.monotonic()
    try:
        evaluation = pool.submit(problem.task, candidate, Options()).result()
    except UserError as error:
        return refused(problem, error, time.monotonic() - begin)
    return describe(problem, evaluation, time.monotonic() - begin)


def refused(problem: Problem, error: UserError, wall: float) -> dict[str, Any]:
    folder = str(Path(problem.task.path or "").parent)
    what = error.what.replace(f"{folder}/", "")
    return {
        "problem": problem.name,
        "task": problem.task.name,
        "end": f"refused/{type(error).__name__}",
        "message": what,
        "wall": round(wall, 2),
    }


def footprint(problem: Problem) -> dict[str, float]:
    """What one call takes, in GiB, and what judging may take: thrice that, eager's peak, 3 GiB."""
    try:
        reference = Reference(problem.task, "cuda")
        (workload,) = problem.task.workloads
        with torch.no_grad():
            found, _ = measure(reference, workload, reference.draw(workload, 1))
        sizes = {"call": found.call, "eager": found.peak, "allowed": found.lane + 3 * GIB}
        return {name: round(size / GIB, 3) for name, size in sizes.items()}
    except Exception as error:
        return {"unknown: " + str(error)[:200]: 0.0}
    finally:
        del reference
        torch.cuda.empty_cache()


def is_over(row: dict[str, Any]) -> bool:
    """Did judging take more than it may?"""
    allowed = row.get("memory", {}).get("allowed")
    return allowed is not None and row["peak"] > allowed


@contextmanager
def leaving_free(gib: float | None) -> Iterator[None]:
    """While another program holds all memory of the device but so much."""
    if gib is None:
        yield
        return
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(gib)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.communicate("\n")


def one_by_one(chosen: argparse.Namespace, problems: list[Problem], keep: Any) -> None:
    candidates = {}
    for problem in problems:
        try:
            candidates[problem.name] = program(problem, chosen.seeds, "first")
        except UserError as error:
            keep(refused(problem, error, 0.0) | {"end": "no seed"})
    sizes = {p.name: footprint(p) if chosen.footprints else {} for p in problems}
    torch.cuda.empty_cache()
    watch = Watch()
    try:
        able = [problem for problem in problems if problem.name in candidates]
        _judge_all(chosen, able, candidates, sizes, watch, keep)
    finally:
        watch.close()


def _judge_all(
    chosen: argparse.Namespace,
    problems: list[Problem],
    candidates: dict[str, Candidate],
    sizes: dict[str, dict[str, float]],
    watch: Watch,
    keep: Any,
) -> None:
    deadline = time.monotonic() + 60 * chosen.minutes
    with leaving_free(chosen.leave_free), LocalPool(1) as pool:
        if chosen.warm:
            judge(pool, problems[0], program(problems[0], None, "warm-up"))
        for problem in problems:
            for turn in ("first", "second") if chosen.again else ("first",):
                if time.monotonic() > deadline:
                    return
                time.sleep(chosen.settle)
                watch.start()
                candidate = candidates[problem.name]
                if turn == "second":
                    candidate = candidate.model_copy(update={"source": candidate.source + "# 2\n"})
                row = judge(pool, problem, candidate)
                row |= {"turn": turn, "peak": watch.peak(), "memory": sizes[problem.name]}
                keep(row)


def side_by_side(chosen: argparse.Namespace, problems: list[Problem], keep: Any) -> None:
    with leaving_free(chosen.leave_free), LocalPool(chosen.lanes) as pool:
        futures = {}
        begin = time.monotonic()
        for problem in problems:
            candidate = program(problem, chosen.seeds, "first")
            futures[pool.submit(problem.task, candidate, Options())] = problem
        try:
            for future in as_completed(futures, timeout=60 * chosen.minutes):
                problem, wall = futures[future], time.monotonic() - begin
                try:
                    keep(describe(problem, future.result(), wall))
                except UserError as error:
                    keep(refused(problem, error, wall))
        except TimeoutError as error:
            print(f"stopped after {chosen.minutes:g} minutes: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--problems", nargs="+", help="such as 1:23; default: all of levels 1 to 3")
    parser.add_argument("--sample", type=int, help="so many, drawn with a fixed seed")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--seeds", type=Path, help="a folder for torch.compile's output")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="a second candidate of each problem")
    parser.add_argument("--warm", action="store_true", help="judge the first problem once before")
    parser.add_argument("--footprints", action="store_true", help="measure what a call takes, too")
    parser.add_argument("--settle", type=float, default=SETTLING_SECONDS, help="pause before each")
    parser.add_argument("--leave-free", type=float, metavar="GIB", help="hold all other memory")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    problems = find_problems(chosen.checkout, chosen.precision)
    if chosen.problems:
        problems = [p for p in problems if p.name in chosen.problems]
    if chosen.sample:
        problems = random.Random(0).sample(problems, chosen.sample)
    known = chosen.json.read_text().splitlines() if chosen.json.exists() else []
    done = {json.loads(line).get("problem") for line in known}
    problems = [p for p in problems if p.name not in done]
    rows: list[dict[str, Any]] = []
    begin = time.monotonic()
    with chosen.json.open("a") as file:

        def keep(row: dict[str, Any]) -> None:
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
            shown = row["message"][:160].replace("\n", " ")
            allowed = row.get("memory", {}).get("allowed", "")
            taken = f"{row.get('peak', '')} GiB of {allowed}"
            print(f"{row['problem']:6} {row['end']:28} {row['wall']:6} s {taken} {shown}")

        (one_by_one if chosen.lanes == 1 else side_by_side)(chosen, problems, keep)
        summary = {
            "precision": chosen.precision,
            "lanes": chosen.lanes,
            "leave_free": chosen.leave_free,
            "program": "seed" if chosen.seeds else "eager and a copy",
            "problems": len(rows),
            "seconds": round(time.monotonic() - begin, 1),
            "judging": round(sum(row["wall"] for row in rows), 2) if chosen.lanes == 1 else None,
            "settle": chosen.settle,
            "over": sorted({row["problem"] for row in rows if is_over(row)}),
            "ends": Counter(str(row["end"]) for row in rows),
            "device": describe_device().name,
            "torch": torch.__version__,
        }
        print(json.dumps(summary), file=file, flush=True)
        print(json.dumps(summary, indent=1), flush=True)


if __name__ == "__main__":
    main()
