"""Input sets whose right answer is known, and how answers to them are compared with it.

Small sets are kept with their answers. Of large ones only the recipe is kept: they are drawn again
when they are needed, and their answers computed again.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import torch

from kernel_smith.evaluation.judge.inputs.reference import AUTHOR, InputSet, Reference
from kernel_smith.evaluation.judge.inputs.rows import PartOfReference, Rows
from kernel_smith.evaluation.judge.values.accuracy import (
    Bounds,
    Expected,
    expect,
    is_finite,
    parts,
    scales_of,
)
from kernel_smith.evaluation.judge.values.comparison import (
    Comparison,
    compare,
    is_excused,
    plainly_right,
)
from kernel_smith.evaluation.judge.values.survey import count_wrong, is_within
from kernel_smith.records import Variant, Workload

_SECRET_ROWS = 8  # per block, at most
_NEGLIGIBLE = 1e-25  # beside the usual size of a result

_system_random = random.SystemRandom()


class Facts(NamedTuple):
    """What the oracle says of one kind of inputs."""

    bounds: Bounds
    reference_error: float

    @classmethod
    def of(cls, expected: Expected) -> Facts:
        return cls(expected.bounds, expected.reference_error)

    @property
    def rtols(self) -> list[float]:
        """Per output."""
        return self.bounds.rtols

    def with_scales(self, scales: list[float]) -> Facts:
        return self._replace(bounds=replace(self.bounds, scales=scales))


class Block(NamedTuple):
    """Rows of one kind."""

    start: int
    stop: int
    label: str


class Answers(NamedTuple):
    """What a large answer is compared with."""

    reference: list[torch.Tensor]
    library: list[torch.Tensor] | None = None  # where PyTorch may be coarser, and that matters


Foreseen = Answers | None
"""None where answers are kept, or are computed when they are needed."""


class Check(Protocol):
    label: str
    used: bool

    @property
    def facts(self) -> Facts: ...
    def draw(self) -> InputSet:
        """The inputs, the same ones each time."""

    def foresee(self, inputs: InputSet) -> Foreseen:
        """Have the right answer computed while nobody else needs memory."""

    def compare(
        self, got: list[torch.Tensor], inputs: InputSet, foreseen: Foreseen = None
    ) -> Comparison:
        """Compare an answer in full, with the benefit of the doubt."""

    def compare_timed(
        self, got: list[torch.Tensor], want: list[torch.Tensor], inputs: InputSet
    ) -> Comparison:
        """The same for a timed call, whose inputs the reference's process has answered."""

    def agrees(self, got: list[torch.Tensor], inputs: InputSet, foreseen: Foreseen = None) -> bool:
        """Is an answer plainly right?"""

    def fits_in_place_of(self, other: InputSet) -> bool:
        """Can its inputs lie in memory where the other's do?"""


class SmallCheck:
    """One input set and its right answer."""

    def __init__(
        self, reference: Reference, workload: Workload, inputs: InputSet, extra_rtol: float
    ) -> None:
        self.inputs = inputs
        self.label = inputs.label
        self.used = False
        self.expected = expect(reference, workload, inputs, extra_rtol)
        self._reference = reference
        self._workload = workload

    @property
    def facts(self) -> Facts:
        return Facts.of(self.expected)

    def draw(self) -> InputSet:
        return self.inputs

    def foresee(self, inputs: InputSet) -> Foreseen:
        return None  # it is known

    def compare(
        self, got: list[torch.Tensor], inputs: InputSet, foreseen: Foreseen = None
    ) -> Comparison:
        return compare(got, self.expected, self._reference, self._workload, inputs)

    def compare_timed(
        self, got: list[torch.Tensor], want: list[torch.Tensor], inputs: InputSet
    ) -> Comparison:
        return self.compare(got, inputs)

    def agrees(self, got: list[torch.Tensor], inputs: InputSet, foreseen: Foreseen = None) -> bool:
        return plainly_right(got, self.expected)

    def fits_in_place_of(self, other: InputSet) -> bool:
        return self.inputs.fits_in_place_of(other)


@dataclass
class Comparer:
    """Compares large answers with the reference's, and what is in doubt with the oracle's.

    An answer is compared in full with what the reference says in its own precision, within the
    tolerance that the oracle justified. Rows that exceed it, and some that are chosen secretly, are
    compared with the oracle's answer to them. Where the reference is not separable, all of it is
    asked about anything that is in doubt.
    """

    reference: Reference
    workload: Workload
    extra_rtol: float
    facts: dict[str, Facts]  # by kind of inputs
    rows: Rows | None
    rows_at_once: int  # that the oracle answers
    left_open: set[str] = field(default_factory=set)
    """Kinds of inputs on which PyTorch is as far off, in the precision that is allowed."""

    @functools.cached_property
    def _part(self) -> Reference:
        """The reference for some rows, whose oracle there is room for."""
        assert self.rows is not None
        return PartOfReference(self.reference, self.rows, self.rows_at_once)

    def answers(self, inputs: InputSet, blocks: Sequence[Block]) -> Answers:
        """Compute what the reference says; and for variants what PyTorch makes of it in the
        precision that the task allows, which they may leave open."""
        right = self.reference.call(self.workload, inputs).tensors
        if all(block.label == AUTHOR for block in blocks):
            return Answers(right)
        library = self.reference.library(self.workload, inputs)
        return Answers(right, None if library is None else library.tensors)

    def compare(
        self,
        got: list[torch.Tensor],
        answers: Answers,
        inputs: InputSet,
        blocks: Sequence[Block],
        *,
        timed: bool = False,
    ) -> Comparison:
        """Compare with the reference's answer, and what is in doubt with the oracle's, beside some
        rows in any case; without these if `timed`."""
        found: Comparison | None = None
        want = answers.reference
        for block in blocks:
            scales = self.facts[block.label].bounds.scales
            if block.label != AUTHOR:  # known from few rows only
                scales = self._scales_of(self._rows_of(want, block))
            rows = self._doubtful_rows(got, want, block, scales)
            if rows and self._is_open(got, answers, block, scales):
                self.left_open.add(block.label)
                found = found or self._undoubted(block)
                continue
            if self.rows is not None and not timed:
                rows += self._secret_rows(block)
            found = self._settle(found, got, inputs, block, rows, scales)
            if found.reason is not None:
                break
        assert found is not None
        return found

    def agrees(
        self, got: list[torch.Tensor], want: list[torch.Tensor], blocks: Sequence[Block]
    ) -> bool:
        """Is nothing in doubt?"""
        for block in blocks:
            bounds = self._bounds(block, self.facts[block.label].bounds.scales)
            mine, theirs = (parts(self._rows_of(tensors, block)) for tensors in (got, want))
            for output, (left, right) in enumerate(zip(mine, theirs, strict=True)):
                if not is_within(left, right, bounds, output):
                    return False
        return True

    def _scales_of(self, answers: list[torch.Tensor]) -> list[float]:
        """Of rows of a variant. In some all answers may be zero, of which something may be left."""
        usual = self.facts[AUTHOR].bounds.scales
        scales = scales_of(parts(answers))
        return [max(scale, _NEGLIGIBLE * whole) for scale, whole in zip(scales, usual, strict=True)]

    def _bounds(self, block: Block, scales: list[float]) -> Bounds:
        """How far off results may be from the reference's, which is off itself."""
        facts = self.facts[block.label].with_scales(scales)
        return facts.bounds.beside_reference(facts.reference_error)

    def _settle(
        self,
        known: Comparison | None,
        got: list[torch.Tensor],
        inputs: InputSet,
        block: Block,
        rows: list[int],
        scales: list[float],
    ) -> Comparison:
        """Have the oracle decide about rows, until one is wrong."""
        found = known or self._undoubted(block)
        if self.rows is None:
            return _worse(found, self._ask_whole_oracle(got, inputs)) if rows else found
        for start, stop in _ranges(rows, self.rows_at_once):
            found = _worse(found, self._ask_oracle(got, inputs, block, start, stop, scales))
            if found.reason is not None:
                break
        return found

    def _undoubted(self, block: Block) -> Comparison:
        """Of results that are as near to the reference's as those may be to the oracle's."""
        bounds, error = self.facts[block.label]
        allowed = max(map(bounds.allowed, range(len(bounds.rtols))), default=0.0)
        return Comparison(None, error, allowed, error, None, [])

    def _rows_of(self, tensors: list[torch.Tensor], block: Block) -> list[torch.Tensor]:
        if self.rows is None:
            return tensors
        return [tensor[block.start : block.stop] for tensor in tensors]

    def _doubtful_rows(
        self,
        got: list[torch.Tensor],
        want: list[torch.Tensor],
        block: Block,
        scales: list[float],
    ) -> list[int]:
        """Rows of a block that are off by more than the reference's own error explains."""
        bounds = self._bounds(block, scales)
        mine, theirs = (parts(self._rows_of(tensors, block)) for tensors in (got, want))
        rows: set[int] = set()
        for output, (left, right) in enumerate(zip(mine, theirs, strict=True)):
            if self.rows is not None:
                count_wrong(left, right, bounds, output, rows)
            elif count_wrong(left, right, bounds, output):
                return [0]
        return [row + block.start for row in rows]

    def _is_open(
        self,
        got: list[torch.Tensor],
        answers: Answers,
        block: Block,
        scales: list[float],
    ) -> bool:
        """Does PyTorch itself stray as far from the reference, in the precision that is allowed?
        Then a kernel cannot be blamed. The author's own inputs are never left open."""
        right, library = answers
        if block.label == AUTHOR or library is None:
            return False
        bounds = self._bounds(block, scales)
        mine, right, coarse = (
            parts(self._rows_of(tensors, block)) for tensors in (got, right, library)
        )
        return all(
            is_finite(a) and is_excused(*(count_wrong(x, b, bounds, i) for x in (a, c)))
            for i, (a, b, c) in enumerate(zip(mine, right, coarse, strict=True))
        )

    def _secret_rows(self, block: Block) -> list[int]:
        """A few neighbouring ones anywhere."""
        many = min(self.rows_at_once, _SECRET_ROWS, block.stop - block.start)
        start = _system_random.randrange(block.start, block.stop - many + 1)
        return list(range(start, start + many))

    def _ask_oracle(
        self,
        got: list[torch.Tensor],
        inputs: InputSet,
        block: Block,
        start: int,
        stop: int,
        scales: list[float],
    ) -> Comparison:
        assert self.rows is not None
        part = replace(self.rows.take(inputs, start, stop), label=block.label)
        expected = expect(self._part, self.workload, part, self.extra_rtol, scales)
        mine = [tensor[start:stop] for tensor in got]
        found = compare(mine, expected, self._part, self.workload, part)
        if found.worst is None:
            return found
        row, *rest = found.worst.index
        worst = found.worst.model_copy(update={"index": (row + start, *rest)})
        return found._replace(worst=worst)

    def _ask_whole_oracle(self, got: list[torch.Tensor], inputs: InputSet) -> Comparison:
        expected = expect(self.reference, self.workload, inputs, self.extra_rtol)
        return compare(got, expected, self.reference, self.workload, inputs)


class LargeCheck:
    """A recipe for one input set; its answer is computed whenever it is needed."""

    def __init__(
        self, comparer: Comparer, make: Callable[[], InputSet], blocks: Sequence[Block], label: str
    ) -> None:
        self._comparer = comparer
        self._make = make
        self._blocks = blocks
        self.label = label
        self.used = False

    @property
    def facts(self) -> Facts:
        found = [self._comparer.facts[block.label] for block in self._blocks]
        return max(found, key=lambda facts: max(facts.rtols, default=0.0))

    def draw(self) -> InputSet:
        return self._make()

    def foresee(self, inputs: InputSet) -> Foreseen:
        return self._comparer.answers(inputs, self._blocks)

    def compare(
        self, got: list[torch.Tensor], inputs: InputSet, foreseen: Foreseen = None
    ) -> Comparison:
        answers = foreseen or self._comparer.answers(inputs, self._blocks)
        return self._comparer.compare(got, answers, inputs, self._blocks)

    def compare_timed(
        self, got: list[torch.Tensor], want: list[torch.Tensor], inputs: InputSet
    ) -> Comparison:
        # They are PyTorch's own, in the precision that the task allows.
        return self._comparer.compare(got, Answers(want), inputs, self._blocks, timed=True)

    def agrees(self, got: list[torch.Tensor], inputs: InputSet, foreseen: Foreseen = None) -> bool:
        answers = foreseen or self._comparer.answers(inputs, self._blocks)
        return self._comparer.agrees(got, answers.reference, self._blocks)

    def fits_in_place_of(self, other: InputSet) -> bool:
        return self.label != Variant.STRIDED


def _ranges(rows: Iterable[int], most: int) -> Iterator[tuple[int, int]]:
    """Runs of neighbouring rows, each of at most so many."""
    start = stop = None
    for row in sorted(set(rows)):
        if start is not None and stop is not None and row == stop and stop - start < most:
            stop = row + 1
            continue
        if start is not None and stop is not None:
            yield start, stop
        start, stop = row, row + 1
    if start is not None and stop is not None:
        yield start, stop


def _worse(known: Comparison, found: Comparison) -> Comparison:
    """The less accurate of two comparisons; the surveys of both."""
    worse = found if found.excess >= known.excess else known
    if found.reason is not None:
        worse = found
    return worse._replace(surveys=[*known.surveys, *found.surveys])
