"""Is an answer right? Compared with the oracle, with the benefit of the doubt where there is doubt.

Results that jump (integers, rounding, comparisons) may rightly fall on either side of the jump. So
where an element fails, the oracle is asked again on inputs a few units in the last place away, and
any of its answers is accepted. All inputs move together, and, where only a few elements are left in
doubt, each in a direction of its own: what is divided by its own largest value does not care about
the former. There the reference itself is asked, too, with noise in all that it computes: a choice
between two that are nearly equal depends on how arithmetic rounds on the way, about which the
oracle knows nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    promote,
    round_mantissa,
)
from kernel_smith.evaluation.judge.values.accuracy import (
    MOST_BY_ROUNDING,
    PRECISION_FACTOR,
    Expected,
    error_of,
    parts,
    precision_rtol,
    relative_error,
    wide_type,
)
from kernel_smith.evaluation.judge.values.rounding_noise import RoundingNoise
from kernel_smith.records import ErrorBin, Reason, Workload, WorstElement

_DOWNGRADE_BITS = (10, 7)
_NUDGE = 4.0  # units in the last place
_SCATTERED_NUDGES = 8
_SCATTERED_SHARE = 0.01
_SCATTERED_ELEMENTS = 8
_NOISY_TRIALS = 24
_HISTOGRAM = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)


class Comparison(NamedTuple):
    """How one answer compares."""

    reason: Reason | None
    error: float | None
    worst: WorstElement | None
    ratios: list[torch.Tensor]  # error over allowed error, per output and element


def compare(
    got: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> Comparison:
    """Compare one answer in full."""
    got = parts(got)
    ratios = _excesses(got, expected)
    peaks = [_largest(ratio) for ratio in ratios]
    if max(peaks, default=0.0) > 1:
        expected = _allowing_for_these(expected, reference, workload, inputs)
        ratios = _excesses(got, expected)
        ratios = _forgive_jumps(got, ratios, expected, reference, workload, inputs)
        peaks = [_largest(ratio) for ratio in ratios]
    error = max((_relative(i, peak, got, expected) for i, peak in enumerate(peaks)), default=0.0)
    if max(peaks, default=0.0) <= 1:
        return Comparison(None, error, None, ratios)
    worst_output = peaks.index(max(peaks))
    worst = _worst_element(worst_output, ratios, got, expected, workload, inputs)
    reason = _name_failure(worst_output, got, error, reference, workload, inputs, expected)
    return Comparison(reason, error if error < float("inf") else None, worst, ratios)


def _excesses(got: list[torch.Tensor], expected: Expected) -> list[torch.Tensor]:
    triples = zip(got, expected.oracle, expected.allowed, strict=True)
    return [_excess(answer, want, allowed) for answer, want, allowed in triples]


def _allowing_for_these(
    expected: Expected, reference: Reference, workload: Workload, inputs: InputSet
) -> Expected:
    """Where the task allows a coarser precision: what that costs on these very inputs.

    It was measured on the author's; a few large values among small ones cost more.
    """
    rtol = min(precision_rtol(reference, workload, inputs), MOST_BY_ROUNDING)
    return replace(expected, rtols=[max(rtol, own) for own in expected.rtols])


def plainly_right(got: list[torch.Tensor], expected: Expected) -> bool:
    """Does an answer agree with the oracle, or with the reference, without any benefit of doubt?"""

    bounds = expected.allowed

    def agrees(answers: list[torch.Tensor]) -> bool:
        pairs = zip(parts(got), parts(answers), bounds, strict=True)
        return all(_largest(_excess(g, a.to(wide_type(a)), bound)) <= 1 for g, a, bound in pairs)

    return agrees(expected.oracle) or agrees(expected.reference.tensors)


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
            _excess(mine, other.to(wide_type(other)), allowed)
            for mine, other, allowed in zip(got, parts(answers), bounds, strict=True)
        ]
        return [torch.minimum(*pair) for pair in zip(ratios, excesses, strict=True)]

    def answer(moved: InputSet) -> list[torch.Tensor]:
        try:
            return reference.oracle(workload, moved).tensors
        except Exception:  # it insists on a dtype
            return expected.reference.tensors

    def answer_noisily() -> list[torch.Tensor]:
        try:
            with RoundingNoise():  # type: ignore[no-untyped-call]
                return reference.call(workload, inputs).tensors
        except Exception:  # it does something that noise cannot be put into
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
        ratios = accept(answer_noisily())
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
        coarse = error_of(partial(round_mantissa, bits=bits), reference, workload, inputs)
        if error <= min(PRECISION_FACTOR * coarse, MOST_BY_ROUNDING):
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


def _largest(ratio: torch.Tensor) -> float:
    return float(ratio.max()) if ratio.numel() else 0.0
