"""Is an output right? Judged against the fp64 oracle, relative to the reference's own error.

An element may be off by `rtol * (|oracle| + scale)`, where `scale` is the output's root mean
square. `rtol` is the larger of a floor for the dtype (what a differently ordered sum may cost) and
a multiple of the reference's own error; a task that allows a coarser precision adds a multiple of
the error that rounding inputs and parameters to that precision causes. Not a single element may be
wrong.

Results that jump (integers, rounding, comparisons) may rightly fall on either side of the jump. So
where an element fails, the oracle is asked again on inputs a few units in the last place away, and
any of its answers is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from kernel_smith.evaluation.judge.reference import InputSet, Reference, Result, promote
from kernel_smith.records import ErrorBin, Precision, Reason, Workload, WorstElement

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
_TINY = torch.finfo(torch.float64).tiny
_NUDGE = 4.0  # units in the last place
_HISTOGRAM = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)


@dataclass(frozen=True)
class Expected:
    """The right answer to one input set, and how far off an answer may be."""

    reference: Result
    oracle: list[torch.Tensor]
    allowed: list[torch.Tensor | None]
    rtol: float
    reference_error: float
    has_oracle: bool
    derived: bool  # is the tolerance ours, or the task author's?


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
    try:
        exact = reference.oracle(workload, inputs).tensors
        has_oracle = [t.shape for t in exact] == [t.shape for t in native.tensors]
    except RuntimeError:
        # The reference insists on a dtype; its own answer is the best there is.
        has_oracle = False
    if not has_oracle:
        exact = [t.to(_wide(t)) for t in native.tensors]
    error = max(
        (relative_error(got, want) for got, want in zip(native.tensors, exact, strict=True)),
        default=0.0,
    )
    floor = max((_floor(t.dtype) for t in native.tensors), default=0.0)
    rtol = max(floor, _REFERENCE_FACTOR * error, extra_rtol)
    task = reference.task
    allowed: list[torch.Tensor | None] = []
    for got, want in zip(native.tensors, exact, strict=True):
        if not got.is_floating_point():
            allowed.append(None)
        elif task.tolerance is not None:
            allowed.append(task.tolerance.atol + task.tolerance.rtol * want.abs())
        else:
            allowed.append(rtol * (want.abs() + scale_of(want)))
    allowed = [a if a is None else a.clamp_min_(_TINY) for a in allowed]
    derived = task.tolerance is None
    return Expected(native, exact, allowed, rtol, error, has_oracle, derived)


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
    except RuntimeError:
        return 0.0
    pairs = [(r, e) for r, e in zip(rounded, exact, strict=True) if e.is_floating_point()]
    return max((relative_error(r, e) for r, e in pairs), default=0.0)


def compare(
    got: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> Comparison:
    """Compare one answer in full."""
    ratios = [
        _excess(answer, want, allowed)
        for answer, want, allowed in zip(got, expected.oracle, expected.allowed, strict=True)
    ]
    if any(_largest(ratio) > 1 for ratio in ratios):
        ratios = _forgive_jumps(got, ratios, expected, reference, workload, inputs)
    worst_output = max(range(len(ratios)), key=lambda i: _largest(ratios[i]), default=0)
    error = max(
        (
            _relative(ratio, expected, answer, want)
            for ratio, answer, want in zip(ratios, got, expected.oracle, strict=True)
        ),
        default=0.0,
    )
    if not ratios or _largest(ratios[worst_output]) <= 1:
        return Comparison(None, error, None, ratios)
    worst = _worst_element(worst_output, ratios, got, expected, workload, inputs)
    reason = _name_failure(got[worst_output], error, reference, workload, inputs, expected)
    return Comparison(reason, error if error < float("inf") else None, worst, ratios)


def plainly_right(got: list[torch.Tensor], expected: Expected) -> bool:
    """Does an answer agree with the oracle, or with the reference, without any benefit of doubt?"""

    def agrees(answers: list[torch.Tensor]) -> bool:
        pairs = zip(got, answers, expected.allowed, strict=True)
        return all(_largest(_excess(g, a.to(_wide(a)), bound)) <= 1 for g, a, bound in pairs)

    return agrees(expected.oracle) or agrees(expected.reference.tensors)


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.is_floating_point() else tensor.dtype


def _relative(
    ratio: torch.Tensor, expected: Expected, got: torch.Tensor, want: torch.Tensor
) -> float:
    """The error relative to the scale; the derived tolerance has it in the ratio already."""
    if expected.derived and got.is_floating_point():
        return _largest(ratio) * expected.rtol
    return relative_error(got, want)


def _excess(got: torch.Tensor, want: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    """Error over allowed error, per element; at most 1 is right, not finite counts as infinite."""
    if allowed is None:
        return torch.where(got == want, 0.0, float("inf")).double()
    ratio = got.double().sub_(want).abs_().div_(allowed)
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
    answers = [expected.reference.tensors]
    for sign in (1.0, -1.0):
        try:
            answers.append(reference.oracle(workload, _nudged(inputs, sign)).tensors)
        except RuntimeError:
            break
    for answer in answers:
        for index, (other, allowed) in enumerate(zip(answer, expected.allowed, strict=True)):
            excess = _excess(got[index], other.to(_wide(other)), allowed)
            ratios[index] = torch.minimum(ratios[index], excess)
    return ratios


def _nudged(inputs: InputSet, sign: float) -> InputSet:
    promoted = promote(inputs)
    tensors = [
        wide * (1 + sign * _NUDGE * torch.finfo(t.dtype).eps) if t.is_floating_point() else t
        for t, wide in zip(inputs.tensors, promoted.tensors, strict=True)
    ]
    return InputSet(inputs.template, tensors, inputs.label)


def _name_failure(
    got: torch.Tensor,
    error: float,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
    expected: Expected,
) -> Reason:
    if got.is_floating_point() and not bool(got.isfinite().all()):
        return Reason.NON_FINITE
    if not got.is_floating_point() or not expected.has_oracle:
        return Reason.WRONG_VALUES
    for bits in _DOWNGRADE_BITS:
        coarse = _rounding_error(reference, workload, inputs, bits)
        if error <= _PRECISION_FACTOR * coarse:
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
    edges = torch.tensor(_HISTOGRAM, dtype=torch.float64)
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
    difference = (got.double() - exact).abs()
    difference = torch.where(got.double() == exact, 0.0, difference)
    relative = difference / (exact.abs() + scale_of(exact)).clamp_min(1e-300)
    return float(relative.nan_to_num(nan=float("inf")).max())


def scale_of(tensor: torch.Tensor) -> float:
    """Root mean square over the finite elements."""
    finite = tensor[tensor.isfinite()] if not bool(tensor.isfinite().all()) else tensor
    return float(finite.double().square().mean().sqrt()) if finite.numel() else 0.0


def _largest(ratio: torch.Tensor) -> float:
    return float(ratio.max()) if ratio.numel() else 0.0


def _floor(dtype: torch.dtype) -> float:
    if not dtype.is_floating_point:
        return 0.0
    return _FLOORS.get(dtype, _COARSE_FLOOR)
