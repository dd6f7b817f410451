"""Which KernelBench problems begin with a Triton program of authored kernels alone?

    python benchmarks/kernelbench_seeds.py CHECKOUT --json results.jsonl
    python benchmarks/kernelbench_seeds.py CHECKOUT --json ... --level 2 --recipe native-products
    python benchmarks/kernelbench_seeds.py CHECKOUT --json ... --only-make --keep folder
    python benchmarks/kernelbench_seeds.py CHECKOUT --json ... --table

It needs no GPU: programs are made, and their kernels compiled, for one that is not there. A line is
written for every problem when it is done: what the compiler leaves to the library, or why there is
no program; whether there is one without library calls; what its kernels use; processor seconds and
memory of both. Problems that are in the file already are left out, so a run can be continued. All
processes are copies of one that has imported PyTorch: that takes ten seconds, which no line counts.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import describe_machine

from kernel_smith.bench.suites import Problem, Selection, find_problems
from kernel_smith.errors import UserError
from kernel_smith.evaluation.compile_only.targets import find_target
from kernel_smith.inline.triton_key import know_triton_by_its_date
from kernel_smith.proposers.seed import RECIPES
from kernel_smith.records import Task

TARGET = "sm_90"
MOST_SECONDS = 600  # of a processor, for one program
KEPT_OF_KERNELS = ("name", "registers", "spill_bytes", "shared_bytes", "warps", "launches")


def in_a_copy(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Do something in a copy of this process; returns its answer, with what it took."""
    with tempfile.TemporaryDirectory(prefix="kernel-smith-") as folder:
        answer = Path(folder, "answer.json")
        pid = os.fork()
        if pid == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
            os.chdir(folder)
            log = os.open("log", os.O_WRONLY | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
            try:
                answer.write_text(json.dumps(work()))
            except BaseException as error:
                answer.write_text(json.dumps({"failed": f"{type(error).__name__}: {error}"[:500]}))
            os._exit(0)
        _, status, used = os.wait4(pid, 0)
        found: dict[str, Any] = {"failed": f"ended with {os.waitstatus_to_exitcode(status)}"}
        if answer.exists():
            found = json.loads(answer.read_text())
        seconds = round(used.ru_utime + used.ru_stime, 1)
        return found | {"seconds": seconds, "mib": used.ru_maxrss >> 10}


def make(task: Task, recipe: str) -> dict[str, Any]:
    """The seed by a recipe, and its text without library calls."""
    from kernel_smith.proposers.seed.inside.build import build_seed

    names = [workload.name for workload in task.workloads]
    try:
        seed = build_seed(task, "cuda", names, lambda what: None, RECIPES[recipe], compare=False)
    except UserError as error:
        return {"refused": error.what}
    authored = seed.without_library or ("" if seed.library_calls else seed.source)
    return {"library_calls": seed.library_calls, "rewrites": seed.rewrites, "source": authored}


def compile_for_target(task: Task, source: str) -> dict[str, Any]:
    """What the kernels of a program use, or what is wrong with them."""
    import kernel_smith.evaluation.compile_only.inside.main as gate

    workloads = [{"name": each.name, "params": each.params} for each in task.workloads]
    request = {"target": asdict(find_target(TARGET)), "workloads": workloads}
    Path("task.py").write_text(task.source)
    Path("candidate.py").write_text(source)
    Path("request.json").write_text(json.dumps(request))
    os.environ["TRITON_CACHE_DIR"] = str(Path("cache").resolve())
    pid = os.fork()
    if pid == 0:
        gate.main()  # ends its process
    os.waitpid(pid, 0)
    report = json.loads(Path("report.json").read_text())
    outcome = report["outcome"] or {"kind": "died", "message": report["phase"]}
    kernels = [{name: kernel[name] for name in KEPT_OF_KERNELS} for kernel in report["kernels"]]
    too_large = [k["name"] for k in kernels if k["shared_bytes"] > find_target(TARGET).shared_bytes]
    good = outcome["kind"] == "done" and not too_large
    why = outcome["message"][:300] or f"too much shared memory: {', '.join(too_large)}"
    return {"kernels": kernels} | ({} if good else {"problem": why})


def row_of(problem: Problem, recipe: str, keep: Path | None, *, only_make: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": problem.name, "recipe": recipe}
    if problem.task is None:
        return row | {"made": {"refused": problem.why_broken}}
    task = problem.task
    made = in_a_copy(lambda: make(task, recipe))
    source = made.pop("source", "")
    row |= {"made": made, "authored": bool(source)}
    if source and keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{problem.name.replace('/', '_')}.{recipe}.py").write_text(source)
    if source and not only_make:
        row["compiled"] = in_a_copy(lambda: compile_for_target(task, source))
    return row


def verdict(row: dict[str, Any]) -> str:
    made, compiled = row["made"], row.get("compiled", {})
    if why := made.get("refused") or made.get("failed"):
        return f"none: {why}"
    if not row["authored"]:
        return f"with library calls: {', '.join(made['library_calls'])}"
    if why := compiled.get("problem") or compiled.get("failed"):
        return f"does not compile: {why}"
    spilled = sum(kernel["spill_bytes"] or 0 for kernel in compiled.get("kernels", []))
    return "authored" + (f", spills {spilled} bytes" if spilled else "")


def show_table(rows: list[dict[str, Any]]) -> None:
    counts = Counter((row["problem"].partition("/")[0], verdict(row).split(":")[0]) for row in rows)
    for (level, what), count in sorted(counts.items()):
        print(f"{level:8} {what:40} {count}")
    for part in ("made", "compiled"):
        seconds = [row[part]["seconds"] for row in rows if "seconds" in row.get(part, {})]
        if seconds:
            print(f"{part}: {sum(seconds):.0f} s of a processor, {max(seconds)} s at most")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout")
    parser.add_argument("--json", type=Path, required=True, help="the results, also to go on from")
    parser.add_argument("--level", action="append", help="may be repeated")
    parser.add_argument("--problem", action="append", metavar="GLOB", help="may be repeated")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--recipe", choices=RECIPES, default="default")
    parser.add_argument("--keep", type=Path, help="a folder for the programs")
    parser.add_argument("--only-make", action="store_true", help="do not compile their kernels")
    parser.add_argument("--table", action="store_true", help="only count what is in the file")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    rows = []
    if chosen.json.exists():
        rows = [json.loads(line) for line in chosen.json.read_text().splitlines()]
    rows = [row for row in rows if "problem" in row]  # the first line tells of the machine
    if chosen.table:
        show_table(rows)
        return
    selection = Selection(tuple(chosen.level or ()), (), tuple(chosen.problem or ()))
    problems = find_problems([chosen.checkout], selection, [chosen.precision])
    know_triton_by_its_date()
    warnings.simplefilter("ignore")  # the compiler warns about its own affairs
    import torch._inductor.compile_fx

    import kernel_smith.evaluation.compile_only.inside.main
    import kernel_smith.proposers.seed.inside.build  # noqa: F401

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    if not chosen.json.exists():
        machine = describe_machine() | {"precision": chosen.precision, "target": TARGET}
        chosen.json.write_text(json.dumps({"machine": machine}) + "\n")
    known = {(row["problem"], row["recipe"]) for row in rows}
    for problem in problems:
        if (problem.name, chosen.recipe) in known:
            continue
        row = row_of(problem, chosen.recipe, chosen.keep, only_make=chosen.only_make)
        with chosen.json.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{problem.name:60} {verdict(row)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
