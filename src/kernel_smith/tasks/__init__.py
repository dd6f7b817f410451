"""Tasks: reading task files without running them, and finding the built-in ones."""

from kernel_smith.tasks.catalog import SUITES, builtin_tasks, find_task
from kernel_smith.tasks.source import read_task

__all__ = ["SUITES", "builtin_tasks", "find_task", "read_task"]
