"""How to name a task in a command that is suggested to the user."""

from __future__ import annotations

import os

from kernel_smith.records import Task
from kernel_smith.tasks import SUITES, precision_in_source, read_task, with_precision


def words_of(task: Task) -> list[str]:
    """Return a built-in task's name, another's file, and the options that make it this task."""
    as_written = with_precision(task, precision_in_source(task))
    name = task.name if _is_builtin(as_written) else task.path or task.name
    return [name, *precision_words(task)]


def _is_builtin(task: Task) -> bool:
    """Look in the folder of that name alone: to read all of the suites takes a while."""
    files = [suite / task.name / "task.py" for suite in SUITES.values()]
    # Unlike Path.is_file, this answers False to names that no file can have.
    found = [read_task(file) for file in files if os.path.isfile(file)]
    return any(known.content_hash == task.content_hash for known in found)


def precision_words(task: Task) -> list[str]:
    """Return `--precision NAME` if the precision is another than the task's text states."""
    if task.precision is precision_in_source(task):
        return []
    return ["--precision", task.precision.value]
