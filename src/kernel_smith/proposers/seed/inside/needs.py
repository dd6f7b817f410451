"""How much memory a workload needs, and the error where it does not find it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_smith.proposers.seed.inside.memory import room_on, short_of
from kernel_smith.proposers.seed.inside.pretend import fake_tensors
from kernel_smith.proposers.seed.inside.task_module import TaskModule
from kernel_smith.proposers.seed.shortage import Needs, not_enough_for, shortage
from kernel_smith.records import Workload


@contextlib.contextmanager
def explained(subject: str, measured: Callable[[], Needs | None] = lambda: None) -> Iterator[None]:
    """Turn want of memory into an error that says how much was needed, and how much was there."""
    try:
        yield
    except Exception as error:
        device = short_of(error)
        if device is None:
            raise
        what = not_enough_for(subject, device)
        raise shortage(what, device, room_on(device), measured()) from None


def explained_for(module: TaskModule, workload: Workload) -> AbstractContextManager[None]:
    """Do so for what is done with a workload."""
    return explained(f"workload {workload.name}", lambda: measure(module, workload))


def measure(module: TaskModule, workload: Workload) -> Needs | None:
    """Find the sizes of a workload's tensors, by tensors that have no memory; None if unknown."""
    try:
        with fake_tensors(), torch.device("cpu"), torch.no_grad():
            inputs = module.make_inputs(workload)
            model = module.make_model(workload)
            outputs = None
            with contextlib.suppress(Exception):
                outputs = total_bytes(model(*inputs))
        parameters = total_bytes([*model.parameters(), *model.buffers()])
        return Needs(parameters, total_bytes(inputs), outputs)
    except Exception:  # the author's code may want values, which such tensors have not
        return None


def total_bytes(values: Any) -> int:
    """Count the bytes of all tensors; those that share memory count once."""
    tensors = (leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor))
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())
