"""References whose first dimension is a batch of independent problems.

Where the result of some rows depends on these rows alone, the oracle can answer for a few of them
in place of all: fp64 takes twice the memory, and often far more time.
"""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference, Result
from kernel_smith.evaluation.judge.values.accuracy import floor_of, parts, relative_error
from kernel_smith.records import Workload

_MOST_TENSORS = 4  # of which every choice is tried
_EXACT = 1e-9
_LOOSE = 10.0  # times the floor of the dtype: other sizes may take other algorithms
_TRIED_ROWS = 4

_system_random = random.SystemRandom()


@dataclass(frozen=True)
class Rows:
    """How a call falls into rows: which inputs are split, and into how many."""

    count: int
    split: tuple[bool, ...]  # per input tensor

    def take(self, inputs: InputSet, start: int, stop: int) -> InputSet:
        """Views of some rows; inputs that belong to all rows stay whole."""
        pairs = zip(inputs.tensors, self.split, strict=True)
        tensors = [tensor[start:stop] if split else tensor for tensor, split in pairs]
        return InputSet(inputs.template, tensors, inputs.label)


def find_rows(
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
    answer: Result,
    most: int = _TRIED_ROWS,
) -> Rows | None:
    """Try out whether a reference is separable: its answer to some rows is theirs in its answer.

    `most`: how many rows the oracle may be asked about at once.
    """
    sizes = {tensor.shape[0] if tensor.dim() else 0 for tensor in answer.tensors}
    if len(sizes) != 1 or (count := sizes.pop()) < 2:
        return None
    for split in _choices(inputs, count):
        rows = Rows(count, split)
        try:
            if _is_separable(reference, workload, inputs, answer, rows, most):
                return rows
        except Exception:  # a size that does not fit the others: another choice may
            continue
    return None


def _choices(inputs: InputSet, count: int) -> Iterator[tuple[bool, ...]]:
    """Which inputs may be split, all that have so many rows first."""
    able = [bool(t.dim()) and t.shape[0] == count for t in inputs.tensors]
    if not any(able):
        return
    yield tuple(able)
    indices = [index for index, can in enumerate(able) if can]
    if 1 < len(indices) <= _MOST_TENSORS:
        for size in range(len(indices) - 1, 0, -1):
            for chosen in itertools.combinations(indices, size):
                yield tuple(index in chosen for index in range(len(able)))


def _is_separable(
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
    answer: Result,
    rows: Rows,
    most: int,
) -> bool:
    """In double precision on a few rows, exactly; in the reference's own on rows of the whole."""
    many = max(2, min(_TRIED_ROWS, rows.count, most))
    first = _system_random.randrange(rows.count - many + 1)
    places = [(first, first + many), (rows.count - 1, rows.count)]
    together = _oracle_of(reference, workload, rows.take(inputs, *places[0]))
    for place in (0, many - 1):  # one may depend on those before it, or after it
        row = rows.take(inputs, first + place, first + place + 1)
        alone = _oracle_of(reference, workload, row)
        known = together is not None and alone is not None
        if known and not _agree(alone or [], together or [], place, _exactly):
            return False
    for start, stop in places:
        part = parts(reference.call(workload, rows.take(inputs, start, stop)).tensors)
        if not _agree(part, parts(answer.tensors), start, _loosely):
            return False
    return True


def _oracle_of(
    reference: Reference, workload: Workload, inputs: InputSet
) -> list[torch.Tensor] | None:
    try:
        return parts(reference.oracle(workload, inputs).tensors)
    except torch.OutOfMemoryError:  # two rows are too large, or too few
        raise
    except Exception:  # it insists on a dtype
        return None


def _exactly(tensor: torch.Tensor) -> float:
    return _EXACT if tensor.is_floating_point() else 0.0


def _loosely(tensor: torch.Tensor) -> float:
    return _LOOSE * floor_of(tensor.dtype)


def _agree(
    part: list[torch.Tensor],
    whole: list[torch.Tensor],
    start: int,
    allowed: Callable[[torch.Tensor], float],
) -> bool:
    for mine, all_rows in zip(part, whole, strict=True):
        theirs = all_rows[start : start + mine.shape[0]]
        if mine.shape != theirs.shape:
            return False
        if not mine.is_floating_point():
            if not torch.equal(mine, theirs):
                return False
        elif relative_error(mine, theirs) > allowed(mine):
            return False
    return True


class PartOfReference(Reference):
    """A reference that answers for some rows of what its task's author draws."""

    def __init__(
        self, reference: Reference, rows: Rows, most: int, drawn: InputSet | None = None
    ) -> None:
        """`drawn`: take other rows of these each time, in place of drawing anew."""
        vars(self).update(vars(reference))  # the same modules, oracles and secrets
        self.forget_draw()  # which the whole keeps
        self._whole = reference
        self._rows = rows
        self._most = min(most, rows.count)
        self._drawn = drawn

    def draw(self, workload: Workload, seed: int) -> InputSet:
        """Draw all rows, and keep some that lie anywhere among them."""
        whole = self._drawn or self._whole.draw(workload, seed)
        start = _system_random.randrange(self._rows.count - self._most + 1)
        part = self._rows.take(whole, start, start + self._most)
        pairs = zip(part.tensors, self._rows.split, strict=True)
        tensors = [tensor.clone() if split else tensor for tensor, split in pairs]
        return InputSet(part.template, tensors)

    def affords_oracle(self, workload: Workload) -> bool:
        return True


def without_oracle(reference: Reference, workload: Workload) -> Reference:
    """The same reference, whose own answer is taken for the right one."""
    other = copy.copy(reference)
    other._without_oracle = {workload.name}
    return other
