"""Find out what every edit at a program is worth: a table to learn choosing from.

    python benchmarks/choices_table.py TABLE.jsonl [--minutes 25] [--deeper 1] [--programs FOLDER]
    python benchmarks/choices_table.py TABLE.jsonl --report [--json report.json]

All edits at a program are compiled together and timed in one process, on all workloads (a sweep).
The judge then looks at the one that gained most, and at one in 25 of the others, each beside its
parent: what it says takes the place of what the sweep showed, and how well the two agree is
reported. With `--judge-all` it looks at every edit, without a sweep.

Parents are the starting kernels of the CPU suite, a task of each family in turn; with `--deeper`,
so often also each one's child that gained most; then the programs in folders (`TASK/*.py` or
`TASK__*.py`), a task in turn, and their children. Run it again to continue: whatever was found out
is on the disk before the next is asked for. A table is of one machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from choices_agreement import agreement
from common import progress

from kernel_smith.errors import InternalError, UserError
from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, Evaluation, Options, Task
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import builtin_tasks, find_task
from kernel_smith.training.choices.judging import (
    GLANCE,
    QUICK,
    SWEPT,
    judge_options,
    open_state,
    sweep_options,
    to_confirm,
)
from kernel_smith.training.choices.table import State, Table, rows_of

BACKEND = "cpp"
ORDER_SEED = 26
_KNOWN_SECONDS = 2.0  # who took less was complete already

Parents = list[tuple[Task, Candidate]]


def tasks_in_turn(names: list[str], workloads: int | None) -> list[Task]:
    """One of each family, then a second of each, in an order that a seed decides."""
    families = defaultdict(list)
    for task in [find_task(name) for name in names] or builtin_tasks("cpu"):
        families[task.family].append(with_first_workloads(task, workloads))
    rng = random.Random(ORDER_SEED)
    groups = [rng.sample(families[name], len(families[name])) for name in sorted(families)]
    rng.shuffle(groups)
    return [task for turn in zip_longest(*groups) for task in turn if task is not None]


def with_first_workloads(task: Task, count: int | None) -> Task:
    return task.model_copy(update={"workloads": task.workloads[:count]})


def starts(tasks: list[Task]) -> Parents:
    return [(task, start) for task in tasks for start in own_starts(task, BACKEND)]


def programs_in(folders: Iterable[Path], tasks: list[Task]) -> Parents:
    """One of each task, then a second of each, in an order that a seed decides."""
    rng, own = random.Random(ORDER_SEED), []
    for task in tasks:
        paths = sorted(
            path
            for folder in folders
            for path in (*folder.glob(f"{task.name}/*.py"), *folder.glob(f"{task.name}__*.py"))
        )
        rng.shuffle(paths)
        texts = [path.read_text(encoding="utf-8") for path in paths]
        own.append([(task, Candidate(source=text, backend=BACKEND)) for text in texts])
    return [each for turn in zip_longest(*own) for each in turn if each is not None]


def best_children(tasks: list[Task], states: list[State]) -> Parents:
    by_name = {task.name: task for task in tasks}
    found = []
    for state in states:
        best = max(state.known.values(), key=lambda row: row.reward, default=None)
        if best is not None and best.reward > 0:
            programs = {each.program.content_hash: each.program for each in state.menu().options}
            if best.program in programs:  # and not of an older mutator
                found.append((by_name[state.parent.task], programs[best.program]))
    return found


@dataclass
class Work:
    """A table that is being filled, until a moment."""

    engine: LocalPool
    table: Table
    end: float
    judge_all: bool
    cores: tuple[int, ...] | None = None
    done: int = 0
    left: int = 0
    begun: float = field(default_factory=time.monotonic)
    failed: set[tuple[str, str]] = field(default_factory=set)
    evaluated: dict[str, Evaluation] = field(default_factory=dict)

    def _here(self, options: Options) -> Options:
        return options.model_copy(update={"cores": self.cores})

    def is_over(self) -> bool:
        return time.monotonic() > self.end

    def all_of(self, tasks: list[Task], parents: Parents, deeper: int) -> None:
        """Complete programs, then the best child of each, and so on."""
        for level in range(deeper + 1):
            different = {
                (task.name, program.content_hash): (task, program) for task, program in parents
            }
            self.left = len(different)
            with ThreadPoolExecutor(self.engine.capacity()) as lanes:
                found = list(lanes.map(lambda each: self._one(*each), different.values()))
            states = [state for state in found if state is not None]
            parents = best_children(tasks, states) if level < deeper else []

    def _one(self, task: Task, program: Candidate) -> State | None:
        self.left -= 1
        key = task.name, program.content_hash
        if self.is_over() or key in self.failed:
            return self.table.states.get(key)
        begun = time.monotonic()
        try:
            known = self.evaluated.pop(program.content_hash, None)
            options = self._here(GLANCE)
            state = open_state(self.engine, task, program, self.table, options, known)
            if state is not None:
                self._complete(task, state)
        except (InternalError, UserError) as error:
            print(f"\n{task.name} {program.content_hash[:12]}: {error}", file=sys.stderr)
            state = None
        if state is None:
            self.failed.add(key)
        if time.monotonic() - begun > _KNOWN_SECONDS:
            self.done += 1
        states = list(self.table.states.values())
        each = (time.monotonic() - self.begun) / max(self.done, 1)
        progress(
            f"{task.name}: {rows_of(states)} options at {len(states)} programs, {each:.0f} s each; "
            f"about {each * self.left / 60:.0f} min for the {self.left} that are left here"
        )
        return state

    def _complete(self, task: Task, state: State) -> None:
        chosen = None
        if not self.judge_all:
            problem = sweep_options(self.engine, task, state, self.table, self._here(SWEPT))
            if problem:
                print(f"\n{task.name} {state.parent.program[:12]}: {problem}", file=sys.stderr)
            chosen = to_confirm(state)
        self.evaluated |= judge_options(
            self.engine,
            task,
            state,
            self.table,
            options=self._here(QUICK),
            only=chosen,
            is_over=self.is_over,
            progress=progress,
        )


def report(table: Table) -> dict[str, Any]:
    states = list(table.states.values())
    rows = [row for state in states for row in state.known.values()]
    return {
        "options": len(rows),
        "programs": len(states),
        "tasks": len({state.parent.task for state in states}),
        "families": len({state.parent.family for state in states}),
        "complete programs": sum(
            all(each.program.content_hash in state.known for each in state.menu().options)
            for state in states
        ),
        "judged": sum(len(state.judged) for state in states),
        "stages": dict(Counter(row.stage.value for row in rows)),
        "decided": sum(row.is_certain for row in rows),
        "certainly faster": sum(row.reward > 0 for row in rows),
        "agreement": agreement(states),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--minutes", type=float, default=25.0, help="stop after so long")
    parser.add_argument("--workloads", type=int, help="time the first so many of each task only")
    parser.add_argument("--programs", type=Path, action="append", default=[], help="more parents")
    parser.add_argument("--deeper", type=int, default=0, help="so often also the best children")
    parser.add_argument("--task", action="append", default=[], dest="names")
    parser.add_argument("--lanes", type=int, default=1, help="programs at once; timed in turns")
    parser.add_argument(
        "--core", type=int, action="append", help="time on this one; default: all but one"
    )
    parser.add_argument("--judge-all", action="store_true", help="every edit, without sweeps")
    parser.add_argument("--report", action="store_true", help="of what is there, and no more")
    parser.add_argument("--json", type=Path, help="write the report, too")
    asked = parser.parse_args()
    table = Table(asked.table)
    if not asked.report:
        tasks = tasks_in_turn(asked.names, asked.workloads)
        with LocalPool(asked.lanes) as engine:
            end, cores = time.monotonic() + 60 * asked.minutes, asked.core and tuple(asked.core)
            work = Work(engine, table, end, asked.judge_all, cores)
            for parents in (starts(tasks), programs_in(asked.programs, tasks)):
                work.all_of(tasks, parents, asked.deeper)
    text = json.dumps(report(table), indent=1)
    print(f"\n{text}")
    if asked.json is not None:
        asked.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
