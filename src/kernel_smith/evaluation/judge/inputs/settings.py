"""Settings of the whole process, which a task's file may change for itself alone.

A judge has several tasks in hand: `torch.set_default_dtype` at the top of one file would hold for
all of them, and `allow_tf32 = True` would make coarse what other programs are compared with.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.task_code import where
from kernel_smith.records import Task

Setting = tuple[Callable[[], Any], Callable[[Any], object]]


def _attribute(owner: Any, name: str) -> Setting:
    return partial(getattr, owner, name, None), partial(setattr, owner, name)


# How each is read, and set. Those of products by their older names last: they say what holds.
_SETTINGS: tuple[Setting, ...] = (
    (os.getcwd, os.chdir),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    _attribute(torch.backends.cudnn, "benchmark"),
    _attribute(torch.backends.cudnn, "deterministic"),
    _attribute(torch.backends, "fp32_precision"),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    _attribute(torch.backends.cuda.matmul, "allow_tf32"),
    _attribute(torch.backends.cudnn, "allow_tf32"),
)


@contextlib.contextmanager
def settings_kept(task: Task, what: str) -> Iterator[None]:
    """Take back what the task's own code changes.

    Raises `BadInput` for the types and places of new tensors: its results depend on them.
    """
    before = [_value(read) for read, _ in _SETTINGS]
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    try:
        with warnings.catch_warnings():
            yield
        _demand_usual(task, what, dtype, device)
    finally:
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None)
        for (read, write), value in zip(_SETTINGS, before, strict=True):
            if value is not None and _value(read) != value:
                write(value)


def _value(read: Callable[[], Any]) -> Any:
    """None: not known, as of a folder that is gone, or what was set by another of its names."""
    try:
        return read()
    except (OSError, RuntimeError):
        return None


def _demand_usual(task: Task, what: str, dtype: torch.dtype, device: torch.device) -> None:
    chosen = torch.get_default_dtype()
    if chosen != dtype:
        raise BadInput(
            f"{where(task)}: {what} sets the default dtype of the whole process to {chosen}",
            hint=f"leave that out; write dtype={chosen} where tensors are made, and for modules "
            f".to({chosen})",
        )
    if torch.get_default_device() != device:
        raise BadInput(
            f"{where(task)}: {what} sets the default device of the whole process",
            hint="leave that out: tensors are made where the kernels run",
        )
