"""Which workloads an interpreter of kernels can do: seconds for what takes a GPU microseconds."""

from __future__ import annotations

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.reference import Reference, secret_seed
from kernel_smith.records import Task, Workload

_MOST_BYTES = 1 << 20


def interpretable_part(task: Task) -> Task:
    """The task with its small workloads alone. Raises `BadInput` if it has none."""
    reference = Reference(task, "meta")
    small = tuple(w for w in task.workloads if _bytes_read(reference, w) <= _MOST_BYTES)
    if not small:
        raise BadInput(
            f"task {task.name} has no workload that is small enough to be interpreted, "
            f"expected one with at most {_MOST_BYTES >> 20} MiB of inputs and parameters",
            hint="add a small workload to the task, or use --compile-only",
        )
    return task.model_copy(update={"workloads": small})


def _bytes_read(reference: Reference, workload: Workload) -> int:
    """By a call. Learned from tensors without memory, where the task's code can do with those."""
    try:
        return _inputs_and_parameters(reference, workload)
    except BadInput:
        return _inputs_and_parameters(Reference(reference.task), workload)


def _inputs_and_parameters(reference: Reference, workload: Workload) -> int:
    inputs = reference.draw(workload, secret_seed())
    size = sum(tensor.nbytes for tensor in inputs.tensors)
    # What is too large already needs no module, which may take as long to build as it is large.
    return size if size > _MOST_BYTES else size + reference.parameter_bytes(workload)
