"""How much memory one call takes, learnt from the reference."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from kernel_smith.evaluation.judge.inputs.lid import Lid
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    secret_seed,
)
from kernel_smith.records import Task, Workload

_GIB = 1 << 30
_SUSPICIOUS = 0.02  # seconds


@dataclass(frozen=True)
class Footprint:
    """Bytes of one call."""

    inputs: int
    outputs: int
    parameters: int
    peak: int  # of eager PyTorch: all of the above, and what it holds on the way
    seconds: float = 0.0  # that it takes here

    @property
    def call(self) -> int:
        """What a call reads and writes."""
        return self.inputs + self.outputs + self.parameters

    @property
    def lane(self) -> int:
        """What judging takes at most beside contexts: the judge, the candidate and the reference
        hold a call each, and one of them computes."""
        return 3 * self.call + self.peak

    @property
    def oracle(self) -> int:
        """What the whole call takes in double precision."""
        return 2 * self.peak

    def __str__(self) -> str:
        return (
            f"one call reads {self.inputs / _GIB:.2f} GiB of inputs and "
            f"{self.parameters / _GIB:.2f} GiB of parameters and writes {self.outputs / _GIB:.2f} "
            f"GiB; eager PyTorch holds {self.peak / _GIB:.2f} GiB meanwhile"
        )


def measure(reference: Reference, workload: Workload, inputs: InputSet) -> tuple[Footprint, Result]:
    """Call the reference once, and see what it takes."""
    size = sum(tensor.nbytes for tensor in inputs.tensors)
    parameters = reference.parameter_bytes(workload)
    on_device = reference.device == "cuda"
    if on_device:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    seconds, result = _timed_call(reference, workload, inputs)
    outputs = sum(tensor.nbytes for tensor in result.tensors)
    held = torch.cuda.max_memory_allocated() - before if on_device else 2 * outputs
    if seconds > _SUSPICIOUS:  # a first call may have to load or choose kernels
        del result
        again, result = _timed_call(reference, workload, inputs)
        seconds = min(seconds, again)
    return Footprint(size, outputs, parameters, size + parameters + held, seconds), result


def _timed_call(reference: Reference, workload: Workload, inputs: InputSet) -> tuple[float, Result]:
    begin = time.perf_counter()
    result = reference.call(workload, inputs)
    if reference.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, result


def foresee(task: Task, workload: Workload, least: int = 0) -> Footprint | None:
    """What a call takes at least, learnt from tensors without memory.

    None where that fails, and where its inputs are seen to take fewer bytes than `least`.
    """
    try:
        if _draws_less(task, workload, least):
            return None
        reference = Reference(task, "meta")
        inputs = reference.draw(workload, secret_seed())
        if sum(tensor.nbytes for tensor in inputs.tensors) < least:
            return None
        return measure(reference, workload, inputs)[0]
    except Exception:  # the task's code looks at values
        return None


def _draws_less(task: Task, workload: Workload, least: int) -> bool:
    """Tell, by drawing them, whether inputs take fewer bytes than `least`. To compute without
    memory, PyTorch imports half a compiler, which takes seconds."""
    lid = Lid(least)
    try:
        with lid:
            Reference(task).draw(workload, secret_seed())
    except Exception:
        if not lid.exceeded:
            raise
    return not lid.exceeded
