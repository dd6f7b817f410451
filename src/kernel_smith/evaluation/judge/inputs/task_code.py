"""Runs a task's own code, and says which line of it failed."""

from __future__ import annotations

import contextlib
import linecache
import types
from collections.abc import Iterator

import torch

from kernel_smith.errors import BadInput
from kernel_smith.records import Task


def where(task: Task) -> str:
    return task.path or task.name


def execute(task: Task) -> types.ModuleType:
    name = where(task)
    module = types.ModuleType("task")
    module.__file__ = name
    lines = task.source.splitlines(keepends=True)
    linecache.cache[name] = (len(task.source), None, lines, name)
    with explained(task, "the module"):
        exec(compile(task.source, name, "exec"), module.__dict__)
    return module


@contextlib.contextmanager
def explained(task: Task, what: str) -> Iterator[None]:
    """Turn an exception inside the task's own code into an error that names its line."""
    try:
        yield
    except (BadInput, torch.OutOfMemoryError):  # the latter may be others' doing
        raise
    except Exception as error:
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == where(task):
                line = trace.tb_lineno
            trace = trace.tb_next
        place = where(task) + (f":{line}" if line else "")
        hint = "mend the task file, then run `kernel-smith tasks check` on it"
        if isinstance(error, ModuleNotFoundError):
            hint = f"install what it imports, such as by `pip install {error.name}`"
        raise BadInput(
            f"{place}: {what} raised {type(error).__name__}: {error}", hint=hint
        ) from error
