"""How to name a task in a command that is suggested to the user."""

from __future__ import annotations

from kernel_smith.records import Task
from kernel_smith.tasks import SUITES, builtin_tasks, precision_in_source, with_precision


def words_of(task: Task) -> list[str]:
    """Return a built-in task's name, another's file, and the options that make it this task."""
    builtin = {known.content_hash for suite in SUITES for known in builtin_tasks(suite)}
    as_written = with_precision(task, precision_in_source(task))
    name = task.name if as_written.content_hash in builtin else task.path or task.name
    return [name, *precision_words(task)]


def precision_words(task: Task) -> list[str]:
    """Return `--precision NAME` if the precision is another than the task's text states."""
    if task.precision is precision_in_source(task):
        return []
    return ["--precision", task.precision.value]
