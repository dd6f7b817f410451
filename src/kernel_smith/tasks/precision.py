"""Let a caller choose the precision of a task, over what its file says."""

from __future__ import annotations

import ast
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.records import Precision, Task
from kernel_smith.tasks.settings import PRECISION_HINT, read_settings
from kernel_smith.tasks.syntax import TaskFile, listed


def with_precision(task: Task, precision: str | None) -> Task:
    """Return the task with this precision, or as it is for None.

    The record itself changes, so caches, runs, services and the judge all see the choice. Raises
    `BadInput` if no precision has that name.
    """
    if precision is None:
        return task
    known = [each.value for each in Precision]
    if precision not in known:
        raise BadInput(
            f"no precision is called {precision!r}, expected one of {listed(known)}",
            hint=PRECISION_HINT,
        )
    return task.model_copy(update={"precision": Precision(precision)})


def precision_in_source(task: Task) -> Precision:
    """Return the precision that the task's own text states, or the default if it states none.

    A record need not come from a file, so text that cannot be read states none.
    """
    try:
        file = TaskFile(Path(task.path or task.name), task.source, ast.parse(task.source))
        return Precision(read_settings(file).get("precision", Precision.STRICT))
    except (SyntaxError, ValueError, BadInput):
        return Precision.STRICT
