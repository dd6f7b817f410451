"""Runs a task file, and makes a workload's model and inputs from it."""

from __future__ import annotations

import inspect
import traceback
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.proposers.seed.inside.memory import short_of
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.records import Task, Workload


@dataclass(frozen=True)
class TaskModule:
    """The names that a task file defines."""

    scope: dict[str, Any]

    def make_model(self, workload: Workload) -> torch.nn.Module:
        model: torch.nn.Module = self.scope["Model"](*self.init_inputs(workload))
        return model

    def init_inputs(self, workload: Workload) -> list[Any]:
        function = self.scope.get("get_init_inputs")
        if function is None:
            return []
        accepted = inspect.signature(function).parameters
        return list(function(**{k: v for k, v in workload.params.items() if k in accepted}))

    def make_inputs(self, workload: Workload) -> list[Any]:
        return list(self.scope["get_inputs"](**workload.params))


def load_task(task: Task) -> TaskModule:
    """Execute the user's own file."""
    file = task.path or f"{task.name}.py"
    scope: dict[str, Any] = {"__name__": "task", "__file__": file}
    try:
        exec(compile(task.source, file, "exec"), scope)
    except (Exception, SystemExit) as error:
        if short_of(error) is not None:
            raise
        line = traceback.extract_tb(error.__traceback__)[-1].lineno
        raise refused(
            f"the task file fails in line {line}: {type(error).__name__}: {error}",
            hint=f"mend {file}",
        ) from None
    return TaskModule(scope)
