"""Tensors that a judge can copy, compare and hand over: dense ones, of plain numbers."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.nn.parameter import is_lazy

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.task_code import where
from kernel_smith.records import Task


def demand_plain(task: Task, who: str, tensors: Iterable[torch.Tensor]) -> None:
    """Raise `BadInput` for what is sparse, nested, quantised or lazy.

    Asked before anything else: most of what one does with a tensor fails there, or ends the judge.
    """
    for tensor in tensors:
        kind, remedy = _odd(tensor)
        if kind:
            raise BadInput(f"{where(task)}: {who} {kind}", hint=remedy)


def _odd(tensor: torch.Tensor) -> tuple[str, str]:
    if is_lazy(tensor):
        remedy = "give its size to the constructor, such as nn.Linear(64, 32) for nn.LazyLinear(32)"
        return "a parameter without a size", remedy
    if tensor.is_nested:
        remedy = "use dense tensors: padded rows and their lengths, or all values and their offsets"
        return "a nested tensor", remedy
    if tensor.is_quantized:
        remedy = "use its whole numbers, x.int_repr(), and its scale and zero point as arguments"
        return f"a quantised tensor ({tensor.dtype})", remedy
    if tensor.layout != torch.strided:
        remedy = "use dense tensors; a sparse one can travel as its parts"
        return f"a tensor of layout {tensor.layout}", remedy
    return "", ""
