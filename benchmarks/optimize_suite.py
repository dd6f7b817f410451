"""The embedded default on the built-in suite: how much faster do kernels get without any model?

    python benchmarks/optimize_suite.py --json results.json [--evaluations 40] [--minutes 60]
    python benchmarks/optimize_suite.py --backend triton --lanes 4 --at-once 4 --keep F --json ...
    python benchmarks/optimize_suite.py --backend triton --told results/h200/told --json ...

Every task is optimized from its starting kernel and the compiler's seed by tuner and mutator. The
winner is then judged anew, as every run's is, against eager PyTorch and torch.compile, on a GPU
also against its mode max-autotune. Run it again to continue: tasks that the results hold
already are not done twice. `--only` names proposers to ask alone: tuner, mutator, or neither for
the seed by itself. `--keep` is a folder for the winning kernels and the judge's evidence. `--table`
prints what the results hold, as a table.

With `--told F` somebody outside proposes: the programs of F/TASK are told to a run of the task, one
after the other, each as a change of the best so far, which is what `kernel-smith ask --best` and
`tell` do. They are named by their order and what changed: 1_fused.py, 2_wider_loads.py. `--store F`
keeps the runs, to learn from.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from common import describe_machine

from kernel_smith.errors import UserError
from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Budget, Candidate, Evaluation, Options, Sampling, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.presets import find_preset
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store
from kernel_smith.tasks import builtin_tasks

SUITES = {"cpp": "cpu", "triton": "gpu"}  # those with starting kernels for a backend
FINAL = Options(baselines=("eager", "compile"), sampling=Sampling(unstable_above=0.2))
FINAL_ON_GPU = FINAL.model_copy(update={"baselines": ("eager", "compile", "max-autotune")})

Series = list[tuple[Candidate, str]]
"""Programs in their order, each with what it changes."""


def optimize(
    task: Task, chosen: argparse.Namespace, store: Store, engine: LocalPool
) -> dict[str, Any]:
    begin = time.monotonic()
    improve = tell if chosen.told else evolve
    state, why = improve(task, chosen, store, engine)
    spent = time.monotonic() - begin
    row: dict[str, Any] = {"task": task.name, "ended": why, "seconds": round(spent, 1)}
    row |= {"funnel": dict(state.funnel), "by": dict(state.by_proposer)}
    first = state.steps.get(0)
    row["start"] = first and speed(first.evaluation)
    if chosen.told:
        row["told"] = [
            {"program": step.proposal.candidate.name, "speedup": speed(step.evaluation)}
            for step in state.steps.values()
        ]
    if state.best is None:
        return row
    winner = next(
        step for step in state.steps.values() if step.proposal.candidate == state.best.candidate
    )
    row |= {"winner": winner.proposal.proposer, "summary": winner.proposal.summary}
    final = state.confirmation
    if final is None:
        final = engine.submit(task, state.best.candidate, final_options(chosen.backend)).result()
    if final.timing is not None:
        row["final"] = {s.baseline: s.speedup.model_dump() for s in final.timing.speedups}
    if chosen.keep is not None:
        keep(chosen.keep / task.name, None if chosen.told else state.best.candidate, final)
    return row | {"end": final.stage.value}


def final_options(backend: str) -> Options:
    return FINAL if backend == "cpp" else FINAL_ON_GPU


def speed(evaluation: Evaluation | None) -> float | None:
    return evaluation.timing.speedup.value if evaluation and evaluation.timing else None


def evolve(
    task: Task, chosen: argparse.Namespace, store: Store, engine: LocalPool
) -> tuple[RunState, str]:
    """A run by tuner, mutator and seed, or those of them that take part."""
    config = configure(
        task,
        chosen.backend,
        proposers=chosen.only,
        rebudget=lambda _: Budget(evaluations=chosen.evaluations),
        lanes=max(1, chosen.lanes // chosen.at_once),
    )
    config = config.model_copy(update={"confirmation": final_options(chosen.backend)})
    with Run.start(store, task, config) as run:
        why = run.search(engine)
        return run.state, why


def tell(
    task: Task, chosen: argparse.Namespace, store: Store, engine: LocalPool
) -> tuple[RunState, str]:
    """A run by somebody outside, who has written these programs."""
    programs = told_programs(chosen.told / task.name, chosen.backend)
    state = tell_all(programs, task, store, engine)
    return state, f"{len(programs)} programs are told"


def told_programs(folder: Path, backend: str) -> Series:
    return [
        (
            Candidate(backend=backend, source=path.read_text(), name=path.name),
            path.stem.partition("_")[2].replace("_", " "),
        )
        for path in sorted(folder.glob("*_*.py"), key=lambda path: int(path.name.partition("_")[0]))
    ]


def tell_all(programs: Series, task: Task, store: Store, engine: LocalPool) -> RunState:
    """Each as a change of the best so far."""
    config = find_preset("embedded", programs[0][0].backend)
    with Run.start(store, task, config) as run:
        for program, change in programs:
            best = run.state.best
            run.tell(program, engine, best.candidate.content_hash if best else None, change)
        return run.state


def keep(folder: Path, candidate: Candidate | None, evaluation: Evaluation) -> None:
    """A program that was told has its file already."""
    folder.mkdir(parents=True, exist_ok=True)
    if candidate is not None:
        (folder / "kernel.py").write_text(candidate.source)
    (folder / "evaluation.json").write_text(evaluation.model_dump_json(indent=1) + "\n")


def print_table(report: dict[str, Any]) -> None:
    """One line per task, and what they come to. A speedup counts if its whole interval does."""
    rows = [row for row in report["tasks"].values() if row.get("final")]
    names = list(rows[0]["final"])
    columns = ["task", "start", *names, "evaluations", "seconds", "winner"]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        speedups = [row["final"][name] for name in names]
        shown = [f"{s['value']:.2f} [{s['low']:.2f}, {s['high']:.2f}]" for s in speedups]
        start = f"{row['start']:.2f}" if row["start"] else "-"
        spent = [str(row["funnel"]["evaluated"]), f"{row['seconds']:.0f}"]
        print("| " + " | ".join([row["task"], start, *shown, *spent, row["summary"]]) + " |")
    for name in names:
        mean = math.exp(statistics.fmean(math.log(row["final"][name]["value"]) for row in rows))
        faster = sum(row["final"][name]["low"] > 1 for row in rows)
        print(f"\nAgainst {name}: {mean:.2f}x (geometric mean), faster in {faster} of {len(rows)}.")
    both = sum(all(row["final"][name]["low"] > 1 for name in names) for row in rows)
    print(f"\nFaster than all of them in {both} of {len(rows)}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=600.0, help="start no task after that")
    parser.add_argument("--backend", default="cpp")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1, help="so many tasks")
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--told", type=Path, default=None, help="a folder of programs")
    parser.add_argument("--store", type=Path, default=None, help="keep the runs there")
    parser.add_argument("--task", action="append", default=None)
    parser.add_argument(
        "--only", nargs="*", default=["tuner", "mutator", "seed"], help="who takes part"
    )
    chosen = parser.parse_args()
    report: dict[str, Any] = {"machine": describe_machine(), "tasks": {}}
    if chosen.json.exists():
        report = json.loads(chosen.json.read_text())
    if chosen.table:
        print_table(report)
        return
    if chosen.told is None:
        report |= {"evaluations": chosen.evaluations, "proposers": chosen.only}
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(chosen.store or Path(folder) / "runs.sqlite", create=True) as store,
        LocalPool(chosen.lanes) as engine,
        ThreadPoolExecutor(chosen.at_once) as threads,
    ):
        book = Book(report, chosen.json, time.monotonic() + 60 * chosen.minutes)
        for task in tasks_of(chosen):
            if task.name not in report["tasks"]:
                threads.submit(book.add, task, partial(optimize, task, chosen, store, engine))


def tasks_of(chosen: argparse.Namespace) -> list[Task]:
    suite = builtin_tasks(SUITES.get(chosen.backend, "maca"))
    told = None if chosen.told is None else {path.name for path in chosen.told.iterdir()}
    return [
        task
        for task in suite
        if (chosen.task is None or task.name in chosen.task) and (told is None or task.name in told)
    ]


class Book:
    """The results, on disk after each task."""

    def __init__(self, report: dict[str, Any], path: Path, deadline: float) -> None:
        self._report = report
        self._path = path
        self._deadline = deadline
        self._lock = threading.Lock()

    def add(self, task: Task, work: Callable[[], dict[str, Any]]) -> None:
        if time.monotonic() > self._deadline:
            return
        try:
            row = work()
        except UserError as error:
            row = {"task": task.name, "refused": error.what}
        except Exception as error:
            print(f"{task.name}: {error!r}", flush=True)
            return
        with self._lock:
            self._report["tasks"][task.name] = row
            self._path.write_text(json.dumps(self._report, indent=1) + "\n")
        shown = row.get("final", {})
        against = {name: round(ratio["value"], 2) for name, ratio in shown.items()}
        print(task.name, row.get("start"), against, row.get("summary", ""), flush=True)


if __name__ == "__main__":
    main()
