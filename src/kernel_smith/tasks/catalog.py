"""The built-in suites, and finding a task by its name or by its path."""

from __future__ import annotations

import difflib
import functools
import os
from pathlib import Path

from kernel_smith.errors import BadInput, why_no_file
from kernel_smith.records import Task
from kernel_smith.tasks.precision import with_precision
from kernel_smith.tasks.source import read_task
from kernel_smith.tasks.syntax import listed

SUITES = {
    "cpu": Path(__file__).parent / "suite",
    "gpu": Path(__file__).parent / "gpu_suite",
    "maca": Path(__file__).parent / "maca_suite",
}

_LIST_HINT = "see `kernel-smith tasks list`"


def builtin_tasks(suite: str = "cpu") -> list[Task]:
    """Return every task of a suite, by family and then by name."""
    if suite not in SUITES:
        raise BadInput(
            f"no suite is called {suite!r}, expected one of {listed(SUITES)}",
            hint=f"choose one of {listed(SUITES)}",
        )
    return list(_tasks_in(SUITES[suite]))


@functools.cache
def _tasks_in(suite: Path) -> tuple[Task, ...]:
    """Read them once, since they are part of this package."""
    tasks = [read_task(path) for path in suite.glob("*/task.py")]
    return tuple(sorted(tasks, key=lambda task: (task.family, task.name)))


def find_task(name_or_path: str, precision: str | None = None) -> Task:
    """Return the task in a file, in a folder with a `task.py`, or in a suite under this name.

    `precision` overrides the one that the task states.
    """
    return with_precision(_found(name_or_path), precision)


def _found(name_or_path: str) -> Task:
    path = Path(name_or_path)
    for file in (path, path / "task.py"):
        # Unlike Path.is_file, this answers False to names that no file can have.
        if os.path.isfile(file):
            return read_task(file)
    # Almost every one lies in a folder of its name: 150 others need not be read.
    for folder in reversed(SUITES.values()):
        if os.path.isfile(file := folder / path.name / "task.py"):
            task = read_task(file)
            if task.name == name_or_path:
                return task
    builtin = {task.name: task for suite in SUITES for task in builtin_tasks(suite)}
    if name_or_path in builtin:
        return builtin[name_or_path]
    raise _not_found(name_or_path, sorted(builtin))


def _not_found(name_or_path: str, known: list[str]) -> BadInput:
    why = why_no_file(name_or_path)
    if why == "a folder":
        why = why_no_file(Path(name_or_path, "task.py"))
    if why == "no such file" and os.path.isdir(name_or_path):
        return BadInput(
            f"{name_or_path}: the folder holds no `task.py`, expected one",
            hint=f"name the task file itself, or {_LIST_HINT}",
        )
    if why != "no such file" or name_or_path.endswith(".py") or os.sep in name_or_path:
        return BadInput(
            f"{name_or_path}: {why}, expected a task file",
            hint=f"check the path and its permissions; for built-in tasks {_LIST_HINT}",
        )
    near = difflib.get_close_matches(name_or_path, known)
    suggestion = f"did you mean {listed(near)}? {_LIST_HINT}" if near else _LIST_HINT
    return BadInput(
        f"no task is called {name_or_path!r}, expected a built-in name or a path", hint=suggestion
    )
