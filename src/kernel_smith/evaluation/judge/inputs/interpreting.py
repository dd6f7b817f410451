"""Which workloads an interpreter of kernels can do: seconds for what takes a GPU microseconds."""

from __future__ import annotations

import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.reference import Reference, secret_seed
from kernel_smith.records import Task, Workload

_MOST_BYTES = 1 << 20


def interpretable_part(task: Task) -> Task:
    """The task with its small workloads alone. Raises `BadInput` if it has none."""
    reference = Reference(task, "meta")
    small = tuple(w for w in task.workloads if _input_bytes(reference, w) <= _MOST_BYTES)
    if not small:
        raise BadInput(
            f"task {task.name} has no workload that is small enough to be interpreted, "
            f"expected one with at most {_MOST_BYTES >> 20} MiB of inputs",
            hint="add a small workload to the task, or use --compile-only",
        )
    return task.model_copy(update={"workloads": small})


def _input_bytes(reference: Reference, workload: Workload) -> int:
    """Learned from tensors without memory, where the task's code can do with those."""
    try:
        inputs = reference.draw(workload, secret_seed())
    except BadInput:
        inputs = Reference(reference.task).draw(workload, secret_seed())
    return sum(_bytes(tensor) for tensor in inputs.tensors)


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
