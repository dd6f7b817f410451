"""What is right, and how far off may an answer be? By an fp64 oracle and the reference's own error.

An element may be off by `rtol * (|oracle| + scale)`, where `scale` is the output's root mean
square. `rtol` is the larger of a floor for the dtype (what a differently ordered sum may cost) and
a multiple of the reference's own error; a task that allows a coarser precision adds a multiple of
the error that rounding inputs and parameters to that precision causes, or that PyTorch makes with
it on a GPU. Not a single element may be wrong. Complex outputs are compared as pairs of real
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch

from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    Variation,
)
from kernel_smith.evaluation.judge.values.jumps import Jumps, is_few
from kernel_smith.evaluation.judge.values.mantissa import round_mantissa, truncate_mantissa
from kernel_smith.evaluation.judge.values.pieces import pieces
from kernel_smith.records import Precision, Tolerance, Workload

_FLOORS = {
    torch.float64: 1e-9,
    torch.float32: 4e-5,
    torch.bfloat16: 1e-2,
    torch.float16: 2e-3,
}
_COARSE_FLOOR = 5e-2  # fp8 and whatever comes next
_REFERENCE_FACTOR = 4.0
PRECISION_FACTOR = 4.0
_LIBRARY_FACTOR = 2.0
MOST_BY_ROUNDING = 0.1  # beyond it anything could be called a rounding error
_COARSER = {
    Precision.TF32: partial(truncate_mantissa, bits=10),
    Precision.FP16: partial(round_mantissa, bits=10),
    Precision.BF16: partial(round_mantissa, bits=7),
}
HARDLY_VARIES = 0.05  # times its scale, at most
_UNITS = 16.0  # in the last place, of a value of usual size
_SIGNED = {torch.uint16: torch.int32, torch.uint32: torch.int64}
_TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class Bounds:
    """How far off the elements of each output may be."""

    exact: list[bool]  # per output: must it be equal, as integers must?
    tolerance: Tolerance | None  # the task author's
    rtols: list[float]  # per output: a coarse one must not loosen what is asked of its neighbour
    scales: list[float]  # per output: what counts as a small value
    atols: list[float | None] | None = None  # in place of those, of outputs that hardly vary
    jumps: list[Jumps | None] | None = None  # per output: a few elements may be off by more

    def of(self, output: int, want: torch.Tensor) -> torch.Tensor | None:
        """Return the largest error of each of these elements; None where they must be equal."""
        if self.exact[output]:
            return None
        rtol, atol = self.coefficients(output)
        return want.abs().mul_(rtol).add_(atol).clamp_min_(torch.finfo(want.dtype).tiny)

    def coefficients(self, output: int) -> tuple[float, float]:
        """Return what an element may be off by: relative to its size, and in any case."""
        if self.tolerance is not None:
            return self.tolerance.rtol, self.tolerance.atol
        fixed = None if self.atols is None else self.atols[output]
        if fixed is not None:
            return 0.0, fixed
        return self.rtols[output], self.rtols[output] * self.scales[output]

    def jumps_of(self, output: int) -> Jumps | None:
        """Say how many elements may be off by more, where errors are relative to their size."""
        fixed = self.atols is not None and self.atols[output] is not None
        if self.jumps is None or self.tolerance is not None or fixed:
            return None
        return self.jumps[output]

    def allowed(self, output: int) -> float:
        """The largest error of an element of usual size, relative to its size and the scale."""
        if self.exact[output]:
            return 0.0
        rtol, atol = self.coefficients(output)
        scale = self.scales[output]
        return (rtol + atol / scale) / 2 if scale >= _TINY else rtol

    def beside_reference(self, reference_error: float) -> Bounds:
        """The same for a comparison with the reference's own answer, which is off as well."""
        rtols = [rtol + reference_error for rtol in self.rtols]
        share = 1 + 1 / _REFERENCE_FACTOR
        atols = None if self.atols is None else [a and share * a for a in self.atols]
        jumps = None
        if self.jumps is not None:
            jumps = [each and each.beside_reference(share) for each in self.jumps]
        return replace(self, rtols=rtols, atols=atols, jumps=jumps)


@dataclass(frozen=True)
class Expected:
    """The right answer to one input set, and how far off an answer may be."""

    reference: Result
    oracle: list[torch.Tensor]  # in double precision, or the reference's own where there is none
    bounds: Bounds
    reference_errors: list[float]  # per output
    has_oracle: bool

    @property
    def derived(self) -> bool:
        """Is the tolerance ours, or the task author's?"""
        return self.bounds.tolerance is None

    @property
    def rtols(self) -> list[float]:
        return self.bounds.rtols

    @property
    def rtol(self) -> float:
        return max(self.rtols, default=0.0)

    @property
    def reference_error(self) -> float:
        return max(self.reference_errors, default=0.0)


def expect(
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
    extra_rtol: float = 0.0,
    scales: list[float] | None = None,
) -> Expected:
    """Run reference and oracle. Raises whatever they raise.

    `scales` are those of the whole output where `inputs` are only a part of what it is made from.
    """
    native = reference.call(workload, inputs)
    answers = parts(native.tensors)
    floors = [floor_of(tensor.dtype) for tensor in native.tensors]
    exact: list[torch.Tensor] = []
    has_oracle = False
    if reference.affords_oracle(workload):
        try:
            exact = parts(reference.oracle(workload, inputs).tensors)
            has_oracle = [t.shape for t in exact] == [t.shape for t in answers]
        except torch.OutOfMemoryError:
            raise
        except Exception:
            # The reference insists on a dtype; its own answer is the best there is.
            has_oracle = False
    exact = [t.to(wide_type(t)) for t in exact] if has_oracle else answers
    scales = scales or scales_of(exact)
    usual = [max(floor, extra_rtol) for floor in floors]
    own = [_own_error(*each) for each in zip(answers, exact, scales, usual, strict=True)]
    errors, jumps = [error for error, _ in own], [jump for _, jump in own]
    rtols = [
        max(rtol, _REFERENCE_FACTOR * error) for rtol, error in zip(usual, errors, strict=True)
    ]
    bounds = Bounds(
        exact=[not got.is_floating_point() for got in answers],
        tolerance=reference.task.tolerance,
        rtols=rtols,
        scales=scales,
        jumps=jumps,
    )
    variation = reference.variation(workload)
    if variation is not None:
        bounds = replace(bounds, atols=_by_variation(variation, bounds, answers, exact))
    return Expected(
        reference=native,
        oracle=exact,
        bounds=bounds,
        reference_errors=errors,
        has_oracle=has_oracle,
    )


def _by_variation(
    variation: Variation, bounds: Bounds, answers: list[torch.Tensor], exact: list[torch.Tensor]
) -> list[float | None]:
    """How far off may outputs be whose values say less than how they vary?

    As far as their own precision, the reference and the allowed precision are off, in any case.
    """
    atols: list[float | None] = []
    for index, (got, want) in enumerate(zip(answers, exact, strict=True)):
        if bounds.exact[index] or variation.spread[index] > HARDLY_VARIES * bounds.scales[index]:
            atols.append(None)
            continue
        own = relative_error(got, want, 0.0, absolute=True)
        rounding = _UNITS * torch.finfo(got.dtype).eps * bounds.scales[index]
        floor = floor_of(got.dtype) * variation.spread[index]
        lost = PRECISION_FACTOR * variation.lost[index]
        atols.append(max(floor, rounding, _REFERENCE_FACTOR * own, lost))
    return atols


def _own_error(
    got: torch.Tensor, want: torch.Tensor, scale: float, rtol: float
) -> tuple[float, Jumps | None]:
    """The reference's error where it is finite: elsewhere its size would excuse everything.

    Where it exceeds the usual tolerance itself, and on few elements only, it is that on all others,
    beside what is to be said of these few.
    """
    if not got.is_floating_point() or got is want:
        return 0.0, None
    usual = rtol / _REFERENCE_FACTOR
    largest = of_others = 0.0
    far = 0
    for _, (mine, exact) in pieces(got, want):
        finite = torch.where(mine.isfinite(), mine.double(), exact)
        error = relative_error(finite, exact, scale)
        largest = max(largest, error)
        if error > usual:
            exact = exact.double()
            each = _beside_size((finite - exact).abs_(), exact, scale)
            is_far = each > usual
            far += int(is_far.sum())
            error = float(each[~is_far].max()) if not is_far.all() else 0.0
        of_others = max(of_others, error)
    if largest <= rtol or not is_few(far, got.numel()):
        return largest, None
    return of_others, Jumps(far / got.numel(), _REFERENCE_FACTOR * largest)


def precision_rtol(reference: Reference, workload: Workload, inputs: InputSet) -> float:
    """What the task's allowed precision adds to the tolerance.

    By rounding inputs and parameters once; PyTorch's own products round in every layer, and in deep
    networks that is more.
    """
    coarsen = _COARSER.get(reference.task.precision)
    pairs = None if coarsen is None else _coarse_pairs(coarsen, reference, workload, inputs)
    if pairs is None:
        return 0.0
    rounded = _largest_error(pairs)
    right = [exact for _, exact in pairs]
    del pairs  # it may be much memory
    library = reference.library(workload, inputs)
    if library is None:
        return PRECISION_FACTOR * rounded
    strayed = _largest_error(list(zip(parts(library.tensors), right, strict=True)))
    return max(PRECISION_FACTOR * rounded, _LIBRARY_FACTOR * strayed)


def _largest_error(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    return max((relative_error(got, want) for got, want in pairs), default=0.0)


def lost_by_precision(
    reference: Reference, workload: Workload, inputs: InputSet, outputs: int
) -> list[float]:
    """How far off the task's allowed precision makes each output at most, in absolute numbers."""
    coarsen = _COARSER.get(reference.task.precision)
    pairs = None if coarsen is None else _coarse_pairs(coarsen, reference, workload, inputs)
    if pairs is None:
        return [0.0] * outputs
    return [relative_error(rounded, exact, absolute=True) for rounded, exact in pairs]


def coarse_answers(
    reference: Reference, workload: Workload, inputs: InputSet
) -> Iterator[list[torch.Tensor]]:
    """What the precision that the task allows makes of the result: in PyTorch's own products, and
    by rounding what goes in."""
    library = reference.library(workload, inputs)
    if library is not None:
        yield parts(library.tensors)
    coarsen = _COARSER.get(reference.task.precision)
    pairs = None if coarsen is None else _coarse_pairs(coarsen, reference, workload, inputs)
    if pairs is not None:
        yield [rounded for rounded, _ in pairs]


def error_of(
    coarsen: Callable[[torch.Tensor], torch.Tensor],
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> float:
    """What fewer bits of inputs and parameters do to the results."""
    return _largest_error(_coarse_pairs(coarsen, reference, workload, inputs) or [])


def _coarse_pairs(
    coarsen: Callable[[torch.Tensor], torch.Tensor],
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> list[tuple[torch.Tensor, torch.Tensor]] | None:
    """Results with fewer bits and without; None where they cannot be had.

    In double precision, or in the reference's own, which loses far less than fewer bits do.
    """
    for wide in (True, False) if reference.affords_oracle(workload) else (False,):
        try:
            exact = (reference.oracle if wide else reference.call)(workload, inputs).tensors
            rounded = reference.coarse(workload, inputs, coarsen, wide=wide).tensors
        except torch.OutOfMemoryError:
            raise
        except Exception:  # it insists on a dtype
            continue
        return list(zip(parts(rounded), parts(exact), strict=True))
    return None


def parts(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [computable(tensor) for tensor in tensors]


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a type that there is arithmetic for."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    if tensor.is_floating_point() and tensor.dtype.itemsize == 1:
        return tensor.float()
    if tensor.dtype is torch.uint64:  # the same bits: nothing is asked of them but to be equal
        return tensor.view(torch.int64)
    return tensor.to(_SIGNED[tensor.dtype]) if tensor.dtype in _SIGNED else tensor


def is_finite(tensor: torch.Tensor) -> bool:
    """Is every element neither NaN nor infinite?"""
    return all(bool(computable(part).isfinite().all()) for _, (part,) in pieces(tensor))


def wide_type(tensor: torch.Tensor) -> torch.dtype:
    """Return the type that an oracle's answer comes in."""
    return torch.float64 if tensor.is_floating_point() else tensor.dtype


def at_least_single(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, precise enough to compute differences and bounds of them."""
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize < 4 else tensor


def relative_error(
    got: torch.Tensor, want: torch.Tensor, scale: float | None = None, *, absolute: bool = False
) -> float:
    """The largest error relative to the element and the output's scale; infinite if not finite."""
    if got.numel() == 0 or not want.is_floating_point():
        return 0.0
    scale = scale_of(want) if scale is None else scale
    return max(
        _relative_error(mine, exact, scale, absolute) for _, (mine, exact) in pieces(got, want)
    )


def _relative_error(got: torch.Tensor, want: torch.Tensor, scale: float, absolute: bool) -> float:
    exact = want.double()
    off = (got.double() - exact).abs_()
    relative = off if absolute else _beside_size(off, exact, scale)
    largest = float(relative.max())
    if largest < float("inf"):  # false for NaN
        return largest
    same = (got == exact) | (got.isnan() & exact.isnan())
    relative = torch.where(relative.isnan(), float("inf"), relative)
    return float(torch.where(same, 0.0, relative).max())


def _beside_size(off: torch.Tensor, exact: torch.Tensor, scale: float) -> torch.Tensor:
    """Errors relative to the elements and the output's scale."""
    return off.div_(exact.abs().add_(scale).clamp_min_(_TINY))


def scale_of(tensor: torch.Tensor) -> float:
    """Root mean square over the finite elements."""
    total, count = 0.0, 0
    for _, (part,) in pieces(tensor):
        squares = _sum_of_squares(part)
        if not math.isfinite(squares):
            part = part[part.isfinite()]
            squares = _sum_of_squares(part)
        total += squares
        count += part.numel()
    return float((total / count) ** 0.5) if count else 0.0


def _sum_of_squares(tensor: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor, dtype=torch.float64)) ** 2


def scales_of(tensors: list[torch.Tensor]) -> list[float]:
    """Return the scale of each output; whole numbers need none."""
    return [scale_of(tensor) if tensor.is_floating_point() else 0.0 for tensor in tensors]


def floor_of(dtype: torch.dtype) -> float:
    """Return what a differently ordered sum may cost in this dtype, relative to the scale."""
    if dtype.is_complex:
        dtype = dtype.to_real()
    if not dtype.is_floating_point:
        return 0.0
    return _FLOORS.get(dtype, _COARSE_FLOOR)
