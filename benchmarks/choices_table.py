"""Judge every edit that the mutator could make at a program: a table to learn choosing from.

    python benchmarks/choices_table.py TABLE.jsonl [--minutes 25] [--workloads 1] [--deeper 1]

Parents are the starting kernels of the CPU suite, a task of each family in turn; then programs that
were told (`--told`); then, with `--deeper`, each one's child that gained most. Options are timed
beside their parents. Run it again to continue: every judged option is on the disk before the next.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from common import progress
from optimize_suite import told_programs

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, Task
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import builtin_tasks, find_task
from kernel_smith.training.choices.judging import judge_options
from kernel_smith.training.choices.table import State, Table, rows_of

BACKEND = "cpp"
ORDER_SEED = 26


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


def parents(tasks: list[Task], told: Path | None) -> Iterator[tuple[Task, Candidate]]:
    for task in tasks:
        yield from ((task, start) for start in own_starts(task, BACKEND))
    for task in tasks if told else ():
        folder = told / task.name
        if folder.is_dir():
            yield from ((task, program) for program, _ in told_programs(folder, BACKEND))


def best_children(tasks: list[Task], states: list[State]) -> Iterator[tuple[Task, Candidate]]:
    by_name = {task.name: task for task in tasks}
    for state in states:
        best = max(state.judged.values(), key=lambda row: row.reward, default=None)
        if best is not None and best.reward > 0 and state.parent.task in by_name:
            programs = {each.program.content_hash: each.program for each in state.menu().options}
            yield by_name[state.parent.task], programs[best.program]


def report(table: Table) -> None:
    states = list(table.states.values())
    rows = [row for state in states for row in state.judged.values()]
    print(
        f"{rows_of(states)} judged options at {len(states)} programs of "
        f"{len({state.parent.task for state in states})} tasks, "
        f"{len({state.parent.family for state in states})} families"
    )
    print("stages:", dict(Counter(row.stage.value for row in rows)))
    print(
        f"certain: {sum(row.is_certain for row in rows)}, "
        f"of them faster: {sum(row.reward > 0 for row in rows)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("--minutes", type=float, default=25.0, help="stop after so long")
    parser.add_argument("--workloads", type=int, help="time the first so many of each task only")
    parser.add_argument("--told", type=Path, help="a folder of told programs: parents, too")
    parser.add_argument("--deeper", type=int, default=0, help="so often also the best children")
    parser.add_argument("--task", action="append", default=[], dest="names")
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    tasks = tasks_in_turn(asked.names, asked.workloads)
    table = Table(asked.table)
    with LocalPool(1) as engine:
        todo = list(parents(tasks, asked.told))
        for level in range(asked.deeper + 1):
            states = []
            for task, program in todo:
                if time.monotonic() > end:
                    break
                state = judge_options(
                    engine,
                    task,
                    program,
                    table,
                    is_over=lambda: time.monotonic() > end,
                    progress=progress,
                )
                states += [state] if state is not None else []
            todo = list(best_children(tasks, states)) if level < asked.deeper else []
    print()
    report(table)


if __name__ == "__main__":
    main()
