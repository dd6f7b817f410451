"""A first look at a workload: how large it is, and what can be said about it without keeping it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.footprint import Footprint, measure
from kernel_smith.evaluation.judge.inputs.integers import (
    FEWEST_ELEMENTS,
    are_integers,
    free_integers,
)
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    secret_seed,
)
from kernel_smith.evaluation.judge.inputs.rows import Rows, find_rows
from kernel_smith.evaluation.judge.inputs.task_code import explained, where
from kernel_smith.evaluation.judge.values.accuracy import is_finite, parts, scales_of
from kernel_smith.evaluation.sandbox.arena import Slot, dtype_name
from kernel_smith.evaluation.sandbox.tree import foreign_kinds
from kernel_smith.records import Workload

_MORE_DRAWS = 2


@dataclass(frozen=True)
class FirstLook:
    """What one call showed. Its tensors have shapes and types, and no content."""

    footprint: Footprint
    is_large: bool
    seed: int  # of the set that was looked at, and that the reference keeps where sets are mixed
    inputs: InputSet
    answer: Result
    overlapping: frozenset[int]  # outputs that share memory with others
    scales: list[float]  # of the outputs; of a large workload only
    rows: Rows | None  # the same
    row_bytes: int  # that the oracle takes for each


def look_at(reference: Reference, workload: Workload, budget: Budget) -> FirstLook:
    """Draw inputs and call the reference once. Raises `BadInput` where the task's code fails."""
    seed = secret_seed()
    inputs = reference.draw_to_keep(workload, seed)
    with explained(reference.task, f"workload {workload.name}: Model.forward"):
        footprint, answer = _first_call(reference, workload, inputs)
    _demand_values(reference, workload, answer)
    _look_at_integers(reference, workload, inputs)
    is_large = not budget.is_small(footprint)
    rows, row_bytes = None, 0
    if is_large:
        if not budget.affords_oracle(footprint):
            reference.do_without_oracle(workload)
        count = max([t.shape[0] for t in answer.tensors if t.dim()], default=1)
        row_bytes = max(1, 2 * footprint.peak // max(count, 1))  # in double precision
        most = budget.at_once // row_bytes
        rows = find_rows(reference, workload, inputs, answer, most)
    if rows is None or reference.device == "cuda":  # nothing is mixed of it
        reference.forget_draw()
    return FirstLook(
        footprint,
        is_large,
        seed,
        InputSet(inputs.template, [_without_content(t) for t in inputs.tensors]),
        Result(answer.tree, [_without_content(t) for t in answer.tensors]),
        _overlapping(answer.tensors),
        scales_of(parts(answer.tensors)) if is_large else [],
        rows,
        row_bytes,
    )


def _first_call(
    reference: Reference, workload: Workload, inputs: InputSet
) -> tuple[Footprint, Result]:
    """With the parameters of the constructor only where the reference can do with no others."""
    try:
        footprint, answer = measure(reference, workload, inputs)
        usable = all(is_finite(t) for t in answer.tensors if t.is_floating_point())
    except torch.OutOfMemoryError:
        raise
    except Exception:
        if not reference.settle(workload):
            raise
        return measure(reference, workload, inputs)
    if usable or not reference.settle(workload):
        return footprint, answer
    del answer
    return measure(reference, workload, inputs)


def _demand_values(reference: Reference, workload: Workload, answer: Result) -> None:
    """Raise `BadInput` for results in which there is nothing to be compared."""
    foreign = foreign_kinds(answer.tree)
    if answer.tensors and not foreign and any(t.numel() for t in answer.tensors):
        return
    other = "None" if answer.tree == "?builtins.NoneType" else "no numbers"
    what = f"a {foreign[0]}" if foreign else other
    raise BadInput(
        f"{where(reference.task)}: workload {workload.name}: Model.forward returned {what}, "
        "expected tensors with elements",
        hint="return tensors, numbers, or tuples, lists and dictionaries of these",
    )


def _look_at_integers(reference: Reference, workload: Workload, inputs: InputSet) -> None:
    """Find out which of them are free, by drawing a few more."""
    if any(are_integers(t) and t.numel() >= FEWEST_ELEMENTS for t in inputs.tensors):
        others = [reference.draw(workload, secret_seed()) for _ in range(_MORE_DRAWS)]
        reference.note_free_integers(workload, free_integers([inputs, *others]))


def _overlapping(tensors: Sequence[torch.Tensor]) -> frozenset[int]:
    """Which of them lie between the first and the last element of another one?"""
    spans = [range(t.data_ptr(), t.data_ptr() + _bytes_between_ends(t)) for t in tensors]
    pairs = itertools.permutations(enumerate(spans), 2)
    return frozenset(
        index
        for (index, mine), (_, other) in pairs
        if mine and other and mine.start < other.stop and other.start < mine.stop
    )


def _bytes_between_ends(tensor: torch.Tensor) -> int:
    return Slot(0, tensor.shape, tensor.stride(), dtype_name(tensor.dtype)).nbytes


def _without_content(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
