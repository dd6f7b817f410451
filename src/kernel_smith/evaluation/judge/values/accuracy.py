"""What is right, and how far off may an answer be? By an fp64 oracle and the reference's own error.

An element may be off by `rtol * (|oracle| + scale)`, where `scale` is the output's root mean
square. `rtol` is the larger of a floor for the dtype (what a differently ordered sum may cost) and
a multiple of the reference's own error; a task that allows a coarser precision adds a multiple of
the error that rounding inputs and parameters to that precision causes. Not a single element may be
wrong. Complex outputs are compared as pairs of real numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    round_mantissa,
    truncate_mantissa,
)
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
MOST_BY_ROUNDING = 0.1  # beyond it anything could be called a rounding error
_COARSER = {
    Precision.TF32: partial(truncate_mantissa, bits=10),
    Precision.FP16: partial(round_mantissa, bits=10),
    Precision.BF16: partial(round_mantissa, bits=7),
}
_TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class Expected:
    """The right answer to one input set, and how far off an answer may be."""

    reference: Result
    oracle: list[torch.Tensor]
    exact: list[bool]  # per output: must it be equal, as integers must?
    tolerance: Tolerance | None  # the task author's
    rtols: list[float]  # per output: a coarse one must not loosen what is asked of its neighbour
    reference_error: float
    has_oracle: bool

    @property
    def derived(self) -> bool:
        """Is the tolerance ours, or the task author's?"""
        return self.tolerance is None

    @property
    def allowed(self) -> list[torch.Tensor | None]:
        """The largest error per element; computed when needed, for it is as large as the oracle."""
        return [
            None if exact else _allowed(self.tolerance, rtol, want)
            for exact, want, rtol in zip(self.exact, self.oracle, self.rtols, strict=True)
        ]

    @property
    def rtol(self) -> float:
        return max(self.rtols, default=0.0)


def expect(
    reference: Reference, workload: Workload, inputs: InputSet, extra_rtol: float = 0.0
) -> Expected:
    """Run reference and oracle. Raises whatever they raise."""
    native = reference.call(workload, inputs)
    answers = parts(native.tensors)
    floors = [_floor(tensor.dtype) for tensor in native.tensors]
    try:
        exact = parts(reference.oracle(workload, inputs).tensors)
        has_oracle = [t.shape for t in exact] == [t.shape for t in answers]
    except Exception:
        # The reference insists on a dtype; its own answer is the best there is.
        has_oracle = False
    exact = [t.to(wide_type(t)) for t in (exact if has_oracle else answers)]
    errors = [_own_error(got, want) for got, want in zip(answers, exact, strict=True)]
    rtols = [
        max(floor, _REFERENCE_FACTOR * error, extra_rtol)
        for floor, error in zip(floors, errors, strict=True)
    ]
    return Expected(
        reference=native,
        oracle=exact,
        exact=[not got.is_floating_point() for got in answers],
        tolerance=reference.task.tolerance,
        rtols=rtols,
        reference_error=max(errors, default=0.0),
        has_oracle=has_oracle,
    )


def _allowed(tolerance: Tolerance | None, rtol: float, want: torch.Tensor) -> torch.Tensor:
    if tolerance is not None:
        bound = tolerance.atol + tolerance.rtol * want.abs()
    else:
        bound = rtol * (want.abs() + scale_of(want))
    return bound.clamp_min_(_TINY)


def _own_error(got: torch.Tensor, want: torch.Tensor) -> float:
    """The reference's error where it is finite: elsewhere its size would excuse everything."""
    if not got.is_floating_point():
        return 0.0
    return relative_error(torch.where(got.isfinite(), got.double(), want), want)


def precision_rtol(reference: Reference, workload: Workload, inputs: InputSet) -> float:
    """What the task's allowed precision adds to the tolerance."""
    coarsen = _COARSER.get(reference.task.precision)
    if coarsen is None:
        return 0.0
    return PRECISION_FACTOR * error_of(coarsen, reference, workload, inputs)


def error_of(
    coarsen: Callable[[torch.Tensor], torch.Tensor],
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> float:
    """What fewer bits of inputs and parameters do to the results."""
    try:
        exact = reference.oracle(workload, inputs).tensors
        rounded = reference.oracle_coarse(workload, inputs, coarsen).tensors
    except Exception:
        return 0.0
    pairs = [p for p in zip(parts(rounded), parts(exact), strict=True) if p[1].is_floating_point()]
    return max((relative_error(r, e) for r, e in pairs), default=0.0)


def parts(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [computable(tensor) for tensor in tensors]


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in a type that there is arithmetic for."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    if tensor.is_floating_point() and tensor.dtype.itemsize == 1:
        return tensor.float()
    return tensor


def is_finite(tensor: torch.Tensor) -> bool:
    return bool(computable(tensor).isfinite().all())


def wide_type(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.is_floating_point() else tensor.dtype


def relative_error(got: torch.Tensor, want: torch.Tensor) -> float:
    """The largest error relative to the element and the output's scale; infinite if not finite."""
    if got.numel() == 0 or not want.is_floating_point():
        return 0.0
    exact = want.double()
    relative = (got.double() - exact).abs() / (exact.abs() + scale_of(exact)).clamp_min(_TINY)
    same = (got == exact) | (got.isnan() & exact.isnan())
    relative = torch.where(relative.isnan(), float("inf"), relative)
    return float(torch.where(same, 0.0, relative).max())


def scale_of(tensor: torch.Tensor) -> float:
    """Root mean square over the finite elements."""
    finite = tensor[tensor.isfinite()] if not bool(tensor.isfinite().all()) else tensor
    return float(finite.double().square().mean().sqrt()) if finite.numel() else 0.0


def _floor(dtype: torch.dtype) -> float:
    if dtype.is_complex:
        dtype = dtype.to_real()
    if not dtype.is_floating_point:
        return 0.0
    return _FLOORS.get(dtype, _COARSE_FLOOR)
