"""Runs a task's own code, and says which line of it failed."""

from __future__ import annotations

import contextlib
import linecache
import types
from collections.abc import Iterator
from pathlib import Path

import torch

from kernel_smith.errors import BadInput, NotEnoughMemory
from kernel_smith.records import Task

_NO_MEMORY = "can't allocate memory"  # PyTorch's words, whose error is a RuntimeError on the CPU
_NO_CUDA = ("not compiled with CUDA", "Found no NVIDIA driver", "No CUDA GPUs are available")


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


def _lies_beside(task: Task, module: str) -> bool:
    file = Path(where(task))
    beside = file.with_name(f"{module}.py")
    return file.with_name(module).is_dir() or (beside != file and beside.is_file())


@contextlib.contextmanager
def explained(task: Task, what: str) -> Iterator[None]:
    """Turn an exception inside the task's own code into an error that names its line."""
    try:
        yield
    except (BadInput, torch.OutOfMemoryError):  # the latter may be others' doing
        raise
    except (Exception, SystemExit) as error:
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == where(task):
                line = trace.tb_lineno
            trace = trace.tb_next
        place = where(task) + (f":{line}" if line else "")
        told = f"{place}: {what} raised {type(error).__name__}: {error}"
        if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            smaller = "end other programs, or give the task smaller workloads"
            raise NotEnoughMemory(told, hint=smaller) from error
        raise BadInput(told, hint=_hint(task, error)) from error


def _hint(task: Task, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        package = str(error.name).partition(".")[0]
        if _lies_beside(task, package):
            return f"a task is one file: write into it what it needs of {package}, beside it"
        return f"install what it imports, such as by `pip install {package}`"
    if any(words in str(error) for words in _NO_CUDA):
        return "leave out `.cuda()` and `device=`: tensors are made where the kernels run"
    return "mend the task file, then run `kernel-smith tasks check` on it"
