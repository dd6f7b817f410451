"""Is an output right? Judged against the fp64 oracle, relative to the reference's own error.

An element may be off by `rtol * (|oracle| + scale)`, where `scale` is the output's root mean
square. `rtol` is the larger of a floor for the dtype (what a differently ordered sum may cost) and
a multiple of the reference's own error; a task that allows a coarser precision adds a multiple of
the error that rounding inputs and parameters to that precision causes. Not a single element may be
wrong.

Results that jump (integers, rounding, comparisons) may rightly fall on either side of the jump. So
where an element fails, the oracle is asked again on inputs a few units in the last place away, and
any of its answers is accepted. All inputs move together, and, where only a few elements are left in
doubt, each in a direction of its own: what is divided by its own largest value does not care about
the former. There the reference itself is asked, too, with noise in all that it computes: a choice
between two that are nearly equal depends on how arithmetic rounds on the way, about which the
oracle knows nothing. Complex outputs are compared as pairs of real numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch

from kernel_smith.evaluation.judge.reference import InputSet, Reference, Result, promote
from kernel_smith.evaluation.judge.rounding_noise import RoundingNoise
from kernel_smith.records import ErrorBin, Precision, Reason, Tolerance, Workload, WorstElement

_FLOORS = {
    torch.float64: 1e-9,
    torch.float32: 4e-5,
    torch.bfloat16: 1e-2,
    torch.float16: 2e-3,
}
_COARSE_FLOOR = 5e-2  # fp8 and whatever comes next
_REFERENCE_FACTOR = 4.0
_PRECISION_FACTOR = 4.0
_MANTISSA = {Precision.TF32: 10, Precision.FP16: 10, Precision.BF16: 7}
_DOWNGRADE_BITS = (10, 7)
_MOST_BY_ROUNDING = 0.1  # beyond it anything could be called a rounding error
_TINY = torch.finfo(torch.float64).tiny
_NUDGE = 4.0  # units in the last place
_SCATTERED_NUDGES = 8
_NOISY_TRIALS = 24
_SCATTERED_SHARE = 0.01
_SCATTERED_ELEMENTS = 8
_HISTOGRAM = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)


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


class Comparison(NamedTuple):
    """How one answer compares."""

    reason: Reason | None
    error: float | None
    worst: WorstElement | None
    ratios: list[torch.Tensor]  # error over allowed error, per output and element


def expect(
    reference: Reference, workload: Workload, inputs: InputSet, extra_rtol: float = 0.0
) -> Expected:
    """Run reference and oracle. Raises whatever they raise."""
    native = reference.call(workload, inputs)
    answers = _parts(native.tensors)
    floors = [_floor(tensor.dtype) for tensor in native.tensors]
    try:
        exact = _parts(reference.oracle(workload, inputs).tensors)
        has_oracle = [t.shape for t in exact] == [t.shape for t in answers]
    except Exception:
        # The reference insists on a dtype; its own answer is the best there is.
        has_oracle = False
    exact = [t.to(_wide(t)) for t in (exact if has_oracle else answers)]
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
    bits = _MANTISSA.get(reference.task.precision)
    if bits is None:
        return 0.0
    return _PRECISION_FACTOR * _rounding_error(reference, workload, inputs, bits)


def _rounding_error(reference: Reference, workload: Workload, inputs: InputSet, bits: int) -> float:
    try:
        exact = reference.oracle(workload, inputs).tensors
        rounded = reference.oracle_rounded(workload, inputs, bits).tensors
    except Exception:
        return 0.0
    pairs = [
        p for p in zip(_parts(rounded), _parts(exact), strict=True) if p[1].is_floating_point()
    ]
    return max((relative_error(r, e) for r, e in pairs), default=0.0)


def compare(
    got: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> Comparison:
    """Compare one answer in full."""
    got = _parts(got)
    ratios = [
        _excess(answer, want, allowed)
        for answer, want, allowed in zip(got, expected.oracle, expected.allowed, strict=True)
    ]
    peaks = [_largest(ratio) for ratio in ratios]
    if max(peaks, default=0.0) > 1:
        ratios = _forgive_jumps(got, ratios, expected, reference, workload, inputs)
        peaks = [_largest(ratio) for ratio in ratios]
    error = max((_relative(i, peak, got, expected) for i, peak in enumerate(peaks)), default=0.0)
    if max(peaks, default=0.0) <= 1:
        return Comparison(None, error, None, ratios)
    worst_output = peaks.index(max(peaks))
    worst = _worst_element(worst_output, ratios, got, expected, workload, inputs)
    reason = _name_failure(worst_output, got, error, reference, workload, inputs, expected)
    return Comparison(reason, error if error < float("inf") else None, worst, ratios)


def plainly_right(got: list[torch.Tensor], expected: Expected) -> bool:
    """Does an answer agree with the oracle, or with the reference, without any benefit of doubt?"""

    bounds = expected.allowed

    def agrees(answers: list[torch.Tensor]) -> bool:
        pairs = zip(_parts(got), _parts(answers), bounds, strict=True)
        return all(_largest(_excess(g, a.to(_wide(a)), bound)) <= 1 for g, a, bound in pairs)

    return agrees(expected.oracle) or agrees(expected.reference.tensors)


def _parts(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
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


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.is_floating_point() else tensor.dtype


def _relative(index: int, peak: float, got: list[torch.Tensor], expected: Expected) -> float:
    """The error relative to the scale; the derived tolerance has it in the ratio already."""
    if expected.derived and got[index].is_floating_point():
        return peak * expected.rtols[index]
    return relative_error(got[index], expected.oracle[index])


def _excess(got: torch.Tensor, want: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    """Error over allowed error, per element; at most 1 is right, not finite counts as infinite."""
    if allowed is None:
        return torch.where(got == want, 0.0, float("inf")).double()
    ratio = torch.sub(got, want).abs_().div_(allowed)  # in the oracle's precision
    if _largest(ratio) <= 1:  # false for NaN
        return ratio
    same = (got == want) | (got.isnan() & want.isnan())
    return torch.where(same, 0.0, torch.where(ratio.isnan(), float("inf"), ratio))


def _forgive_jumps(
    got: list[torch.Tensor],
    ratios: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> list[torch.Tensor]:
    """Accept also what the reference said, and what the oracle says a rounding error away."""

    bounds = expected.allowed

    def accept(answers: list[torch.Tensor]) -> list[torch.Tensor]:
        excesses = [
            _excess(mine, other.to(_wide(other)), allowed)
            for mine, other, allowed in zip(got, _parts(answers), bounds, strict=True)
        ]
        return [torch.minimum(*pair) for pair in zip(ratios, excesses, strict=True)]

    def answer(moved: InputSet) -> list[torch.Tensor]:
        try:
            return reference.oracle(workload, moved).tensors
        except Exception:  # it insists on a dtype
            return expected.reference.tensors

    ratios = accept(expected.reference.tensors)
    for finest in _units(inputs):
        for sign in (1.0, -1.0):
            moved = _nudged(inputs, [torch.tensor(sign)] * len(inputs.tensors), finest)
            ratios = accept(answer(moved))
        for _ in range(_SCATTERED_NUDGES):
            if not _few_in_doubt(ratios):
                break
            signs = [_random_signs(t) for t in inputs.tensors]
            for side in (signs, [-sign for sign in signs]):
                ratios = accept(answer(_nudged(inputs, side, finest)))
        if all(_largest(ratio) <= 1 for ratio in ratios):
            break
    for _ in range(_NOISY_TRIALS):
        if not _few_in_doubt(ratios):
            break
        with RoundingNoise():  # type: ignore[no-untyped-call]
            ratios = accept(reference.call(workload, inputs).tensors)
    return ratios


def _units(inputs: InputSet) -> tuple[float, ...]:
    """How fine the units in the last place are at least: as the inputs' type has them, and for half
    precision also as single precision has them. Kernels compute in that, and what they get to
    round lies between the inputs that half precision knows."""
    half = any(t.is_floating_point() and t.dtype.itemsize < 4 for t in inputs.tensors)
    return (math.inf, torch.finfo(torch.float32).eps) if half else (math.inf,)


def _nudged(inputs: InputSet, signs: list[torch.Tensor], finest: float) -> InputSet:
    """Inputs a few units in the last place away."""
    promoted = promote(inputs)
    tensors = [
        wide * (1 + sign.double() * _NUDGE * min(torch.finfo(t.dtype).eps, finest))
        if t.is_floating_point()
        else t
        for t, wide, sign in zip(inputs.tensors, promoted.tensors, signs, strict=True)
    ]
    return InputSet(inputs.template, tensors, inputs.label)


def _random_signs(like: torch.Tensor) -> torch.Tensor:
    return torch.empty(like.shape, device=like.device).bernoulli_().mul_(2).sub_(1)


def _few_in_doubt(ratios: list[torch.Tensor]) -> bool:
    """Are a few elements wrong, but not so many that no rounding error explains them?"""
    wrong = [(int((ratio > 1).sum()), ratio.numel()) for ratio in ratios]
    return any(count for count, _ in wrong) and all(
        count <= max(_SCATTERED_ELEMENTS, _SCATTERED_SHARE * size) for count, size in wrong
    )


def _name_failure(
    output: int,
    answers: list[torch.Tensor],
    error: float,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
    expected: Expected,
) -> Reason:
    got, want = answers[output], expected.oracle[output]
    if got.is_floating_point() and bool((want.isfinite() & ~got.isfinite()).any()):
        return Reason.NON_FINITE
    if not got.is_floating_point() or not expected.has_oracle:
        return Reason.WRONG_VALUES
    for bits in _DOWNGRADE_BITS:
        coarse = _rounding_error(reference, workload, inputs, bits)
        if error <= min(_PRECISION_FACTOR * coarse, _MOST_BY_ROUNDING):
            return Reason.PRECISION
    return Reason.WRONG_VALUES


def _worst_element(
    output: int,
    ratios: list[torch.Tensor],
    got: list[torch.Tensor],
    expected: Expected,
    workload: Workload,
    inputs: InputSet,
) -> WorstElement:
    flat = int(ratios[output].flatten().argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), ratios[output].shape))
    bound = expected.allowed[output]
    return WorstElement(
        workload=workload.name,
        inputs=inputs.label,
        output=output,
        index=index,
        got=float(got[output].flatten()[flat]),
        expected=float(expected.oracle[output].flatten()[flat]),
        allowed=float(bound.flatten()[flat]) if bound is not None else 0.0,
    )


def histogram(ratios: list[torch.Tensor]) -> tuple[ErrorBin, ...]:
    """How many elements had which share of the allowed error."""
    if not ratios:
        return ()
    everything = torch.cat([ratio.flatten() for ratio in ratios])
    edges = torch.tensor(_HISTOGRAM, dtype=torch.float64, device=everything.device)
    counts = torch.bincount(torch.bucketize(everything, edges), minlength=len(_HISTOGRAM) + 1)
    bounds: list[float | None] = [*_HISTOGRAM, None]
    return tuple(
        ErrorBin(up_to=bound, elements=int(count))
        for bound, count in zip(bounds, counts, strict=True)
    )


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


def _largest(ratio: torch.Tensor) -> float:
    return float(ratio.max()) if ratio.numel() else 0.0


def _floor(dtype: torch.dtype) -> float:
    if dtype.is_complex:
        dtype = dtype.to_real()
    if not dtype.is_floating_point:
        return 0.0
    return _FLOORS.get(dtype, _COARSE_FLOOR)
