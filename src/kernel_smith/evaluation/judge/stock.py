"""Secret input sets, prepared ahead of the candidates that will see them.

Per workload the judge keeps two kinds. *Check sets* come with the right answer: the author's
distribution under several seeds, and its variants. *Timing sets* are inputs alone: the reference
process answers them in the same round as the candidate.

Every candidate runs in a process of its own that keeps nothing, so a set may serve several
candidates, but none sees the same one twice: timing hands them out without replacement, and when
they run out it mixes the rows of two of them. Whenever the judge has nothing else to do it redraws
what was used, so that feedback about one candidate says nothing about the inputs of the next.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import torch

from kernel_smith.evaluation.judge.accuracy import Expected, expect, precision_rtol
from kernel_smith.evaluation.judge.reference import InputSet, Reference, secret_seed, vary
from kernel_smith.records import Variant, Workload

_MAX_BYTES = 192 << 20
_MAX_SECONDS = 1.0
_MIN_TIMING_SETS = 4
_MAX_TIMING_SETS = 4096
_MAX_REFERENCE_ERROR = 1e-2

_system_random = random.SystemRandom()


class CheckSet:
    """One input set and its right answer."""

    def __init__(self, inputs: InputSet, expected: Expected) -> None:
        self.inputs = inputs
        self.expected = expected
        self.used = False


class Stock:
    """The prepared sets of one workload."""

    def __init__(self, reference: Reference, workload: Workload, seeds: int) -> None:
        self.reference = reference
        self.workload = workload
        self.extra_rtol = precision_rtol(
            reference, workload, reference.draw(workload, secret_seed())
        )
        self.checks = [self._draw_check(None) for _ in range(seeds)]
        self.left_out: list[str] = []
        for variant in reference.task.variants:
            check = self._try_variant(variant)
            if check is None:
                self.left_out.append(variant.value)
            else:
                self.checks.append(check)
        self._pool = self._fill_pool()
        self._seen: set[int] = set()
        self.mixes = self._mixing_works()

    @property
    def calls_to_check(self) -> int:
        """All check sets, and one of them a second time."""
        return len(self.checks) + 1

    @property
    def author(self) -> CheckSet:
        return self.checks[0]

    @property
    def rtol(self) -> float:
        """The tolerance on the author's distribution."""
        return max(c.expected.rtol for c in self.checks if c.inputs.label == "author")

    def hand_out_checks(self) -> list[CheckSet]:
        """All check sets in random order, so that position says nothing."""
        for check in self.checks:
            check.used = True
        return _system_random.sample(self.checks, len(self.checks))

    def timing_sets(self) -> Iterator[InputSet]:
        """An endless supply for one candidate, each set with content it has not seen."""
        order = _system_random.sample(range(len(self._pool)), len(self._pool))
        for index in order:
            self._seen.add(index)
            yield self._pool[index]
        while True:
            if self.mixes:
                yield self._mix(*_system_random.sample(self._pool, 2))
            else:
                yield self._draw()

    def redraw_one(self) -> bool:
        """Replace one used set by a fresh one; False when none is left to replace."""
        for index, check in enumerate(self.checks):
            if check.used:
                label = check.inputs.label
                variant = None if label == "author" else Variant(label)
                fresh = self._draw_check(None) if variant is None else self._try_variant(variant)
                if fresh is not None:
                    self.checks[index] = fresh
                check.used = False
                return True
        if self._seen:
            self._pool[self._seen.pop()] = self._draw()
            return True
        return False

    def _draw(self) -> InputSet:
        return self.reference.draw(self.workload, secret_seed())

    def _draw_check(self, variant: Variant | None) -> CheckSet:
        inputs = self._draw()
        if variant is not None:
            inputs = vary(inputs, variant, secret_seed())
        return CheckSet(inputs, expect(self.reference, self.workload, inputs, self.extra_rtol))

    def _try_variant(self, variant: Variant) -> CheckSet | None:
        """A variant only counts where the reference itself is finite and accurate."""
        try:
            check = self._draw_check(variant)
        except (RuntimeError, ValueError, IndexError, ArithmeticError):
            return None
        answers = check.expected.reference.tensors
        finite = all(bool(t.isfinite().all()) for t in answers if t.is_floating_point())
        coarse = any(t.is_floating_point() and t.dtype.itemsize < 4 for t in answers)
        limit = _MAX_REFERENCE_ERROR * (8 if coarse else 1)
        return check if finite and check.expected.reference_error <= limit else None

    def _fill_pool(self) -> list[InputSet]:
        pool: list[InputSet] = []
        size = sum(t.nbytes for t in self.author.inputs.tensors) or 1
        deadline = time.monotonic() + _MAX_SECONDS
        while len(pool) < _MAX_TIMING_SETS and (len(pool) + 1) * size <= _MAX_BYTES:
            pool.append(self._draw())
            if len(pool) >= _MIN_TIMING_SETS and time.monotonic() > deadline:
                break
        while len(pool) < _MIN_TIMING_SETS:
            pool.append(self._draw())
        return pool

    def _mix(self, left: InputSet, right: InputSet) -> InputSet:
        """The left set with some of the right one's rows, in every floating point tensor."""
        tensors = [_mix_rows(a, b) for a, b in zip(left.tensors, right.tensors, strict=True)]
        return InputSet(left.template, tensors)

    def _mixing_works(self) -> bool:
        """Mixed sets must stay in the reference's domain: same shapes, finite results."""
        left, right = self._pool[:2]
        if [t.shape for t in left.tensors] != [t.shape for t in right.tensors]:
            return False
        if left.template != right.template:
            return False
        if all(_mixable_dimension(t) is None for t in left.tensors):
            return False
        try:
            answers = self.reference.call(self.workload, self._mix(left, right)).tensors
        except (RuntimeError, ValueError, IndexError):
            return False
        return all(bool(t.isfinite().all()) for t in answers if t.is_floating_point())


def _mixable_dimension(tensor: torch.Tensor) -> int | None:
    """The first dimension of at least two rows. Integers may be indices or offsets: left alone."""
    if not tensor.is_floating_point():
        return None
    return next((d for d, size in enumerate(tensor.shape) if size > 1), None)


def _mix_rows(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Between a quarter and three quarters of the rows come from `right`."""
    dimension = _mixable_dimension(left)
    if dimension is None:
        return left
    rows = left.shape[dimension]
    count = max(1, int(rows * _system_random.uniform(0.25, 0.75)))
    start = _system_random.randrange(rows - count + 1)
    mixed = left.clone()
    mixed.narrow(dimension, start, count).copy_(right.narrow(dimension, start, count))
    return mixed
