"""Tasks: reading task files without running them, and finding the built-in ones."""

from kernel_smith.tasks.catalog import SUITES, builtin_tasks, find_task
from kernel_smith.tasks.precision import precision_in_source, with_precision
from kernel_smith.tasks.source import read_task

__all__ = [
    "SUITES",
    "builtin_tasks",
    "find_task",
    "precision_in_source",
    "read_task",
    "with_precision",
]
