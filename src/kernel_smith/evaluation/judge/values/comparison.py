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
    AUTHOR,
    InputSet,
    Reference,
    promote,
)
from kernel_smith.evaluation.judge.values.accuracy import (
    MOST_BY_ROUNDING,
    PRECISION_FACTOR,
    Expected,
    coarse_answers,
    error_of,
    parts,
    precision_rtol,
    relative_error,
)
from kernel_smith.evaluation.judge.values.jumps import is_few
from kernel_smith.evaluation.judge.values.mantissa import round_mantissa
from kernel_smith.evaluation.judge.values.pieces import pieces
from kernel_smith.evaluation.judge.values.rounding_noise import RoundingNoise
from kernel_smith.evaluation.judge.values.survey import Survey, count_wrong, excess_at, survey
from kernel_smith.records import Reason, Workload, WorstElement

_DOWNGRADE_BITS = (10, 7)
_NUDGE = 4.0  # units in the last place
_SCATTERED_NUDGES = 8
_SCATTERED_ELEMENTS = 8
_NOISY_TRIALS = 24
_TIMES_LOST = 2  # as many elements as the allowed precision gets wrong


class Comparison(NamedTuple):
    """How one answer compares. Errors are of the output that comes closest to what is allowed, or
    exceeds it most, and relative to its scale."""

    reason: Reason | None
    error: float | None  # None: not finite
    allowed: float
    reference_error: float
    worst: WorstElement | None
    surveys: list[Survey]  # per output

    @property
    def excess(self) -> float:
        """Error over allowed error."""
        if self.error is None:
            return math.inf
        return self.error / self.allowed if self.allowed else 0.0


def compare(
    got: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> Comparison:
    """Compare one answer in full."""
    got = parts(got)
    surveys, expected = _surveyed(got, expected, reference, workload, inputs)
    if not surveys:
        return Comparison(None, 0.0, 0.0, 0.0, None, [])
    closeness = [(each.peak, expected.bounds.allowed(i)) for i, each in enumerate(surveys)]
    output = closeness.index(max(closeness))
    peak, allowed = closeness[output]
    error = peak * allowed if allowed else 0.0
    found = Comparison(
        None,
        error if error < math.inf else None,
        allowed,
        expected.reference_errors[output],
        None,
        surveys,
    )
    if not any(each.wrong for each in surveys):
        return found
    worst = _worst_element(output, surveys, got, expected, workload, inputs)
    if not expected.derived:
        error = relative_error(got[output], expected.oracle[output])
    reason = _name_failure(output, got, error, reference, workload, inputs, expected)
    return found._replace(reason=reason, worst=worst)


def is_accepted(
    got: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> bool:
    """Tell whether one answer is right. Why not takes another four answers of the oracle."""
    surveys, _ = _surveyed(parts(got), expected, reference, workload, inputs)
    return not any(each.wrong for each in surveys)


def _surveyed(
    got: list[torch.Tensor],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> tuple[list[Survey], Expected]:
    """Survey each output, with the benefit of the doubt, and say what was expected then."""
    surveys = [survey(g, expected.bounds, i, [expected.oracle[i]]) for i, g in enumerate(got)]
    if any(each.wrong for each in surveys):
        cost = _cost_of_precision(expected, reference, workload, inputs)
        expected = _allowing(expected, min(cost, MOST_BY_ROUNDING))
        # What the reference says is right as well.
        answers = zip(expected.oracle, parts(expected.reference.tensors), strict=True)
        surveys = [
            survey(g, expected.bounds, i, list(both))
            for i, (g, both) in enumerate(zip(got, answers, strict=True))
        ]
        surveys = _forgive_jumps(got, surveys, expected, reference, workload, inputs)
        surveys = _leave_open(surveys, expected, reference, workload, inputs)
    return surveys, expected


def _cost_of_precision(
    expected: Expected, reference: Reference, workload: Workload, inputs: InputSet
) -> float:
    """Where the task allows a coarser precision: what that costs on these very inputs.

    It was measured on the author's; a few large values among small ones cost more.
    """
    if expected.bounds.atols is not None:  # has been allowed for
        return 0.0
    return precision_rtol(reference, workload, inputs)


def _allowing(expected: Expected, rtol: float) -> Expected:
    bounds = replace(expected.bounds, rtols=[max(rtol, own) for own in expected.rtols])
    return replace(expected, bounds=bounds)


def _leave_open(
    surveys: list[Survey],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> list[Survey]:
    """Accept what the allowed precision makes anything of, as a softmax of large numbers does where
    two of them are nearly equal: as many wrong elements as that precision gets wrong elsewhere.

    Of variants only: that a task can be decided on its own inputs is its author's matter.
    """
    if inputs.label == AUTHOR or not any(found.wrong for found in surveys):
        return surveys
    for answers in coarse_answers(reference, workload, inputs):
        lost = [
            count_wrong(answer, expected.oracle[i], expected.bounds, i)
            for i, answer in enumerate(answers)
        ]
        if all(is_excused(mine.wrong, theirs) for mine, theirs in zip(surveys, lost, strict=True)):
            return [found.accepting(_undecided(found.excess)) for found in surveys]
    return surveys


def is_excused(wrong: int, lost: int) -> bool:
    """May so many elements be wrong, where the allowed precision gets so many wrong?"""
    return wrong <= (_TIMES_LOST * lost + _SCATTERED_ELEMENTS if lost else 0)


def _undecided(excess: torch.Tensor) -> torch.Tensor:
    return torch.where(excess.isfinite(), excess.clamp(max=1.0), excess)


def plainly_right(got: list[torch.Tensor], expected: Expected) -> bool:
    """Does an answer agree with the oracle, or with the reference, without any benefit of doubt?"""

    def agrees(answers: list[torch.Tensor]) -> bool:
        pairs = enumerate(zip(parts(got), parts(answers), strict=True))
        return not any(survey(g, expected.bounds, i, [answer]).wrong for i, (g, answer) in pairs)

    return agrees(expected.oracle) or agrees(expected.reference.tensors)


def _forgive_jumps(
    got: list[torch.Tensor],
    surveys: list[Survey],
    expected: Expected,
    reference: Reference,
    workload: Workload,
    inputs: InputSet,
) -> list[Survey]:
    """Accept also what the oracle says a rounding error away."""

    def accept(answers: list[torch.Tensor]) -> list[Survey]:
        return [
            found.accepting(excess_at(found, mine, other, expected, i)) if found.wrong else found
            for i, (found, mine, other) in enumerate(zip(surveys, got, parts(answers), strict=True))
        ]

    def answer(moved: InputSet) -> list[torch.Tensor]:
        try:
            return reference.oracle(workload, moved).tensors
        except Exception:  # it insists on a dtype
            return expected.reference.tensors

    def answer_noisily() -> list[torch.Tensor]:
        try:
            with RoundingNoise():
                return reference.call(workload, inputs).tensors
        except Exception:  # it does something that noise cannot be put into
            return expected.reference.tensors

    if any(found.overflow for found in surveys) or not reference.affords_oracle(workload):
        return surveys
    for finest in _units(inputs):
        if not any(found.wrong for found in surveys):
            break
        for sign in (1.0, -1.0):
            moved = _nudged(inputs, [torch.tensor(sign)] * len(inputs.tensors), finest)
            surveys = accept(answer(moved))
        for _ in range(_SCATTERED_NUDGES):
            if not _few_in_doubt(surveys):
                break
            signs = [_random_signs(t) for t in inputs.tensors]
            for side in (signs, [-sign for sign in signs]):
                surveys = accept(answer(_nudged(inputs, side, finest)))
    for _ in range(_NOISY_TRIALS):
        if not _few_in_doubt(surveys):
            break
        surveys = accept(answer_noisily())
    return surveys


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


def _few_in_doubt(surveys: list[Survey]) -> bool:
    """Are a few elements wrong, but not so many that no rounding error explains them?"""
    wrong = [(found.wrong, found.size) for found in surveys]
    return any(count for count, _ in wrong) and all(is_few(*counts) for counts in wrong)


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
    pairs = pieces(want, got)
    if got.is_floating_point() and any(
        bool((w.isfinite() & ~g.isfinite()).any()) for _, (w, g) in pairs
    ):
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
    surveys: list[Survey],
    got: list[torch.Tensor],
    expected: Expected,
    workload: Workload,
    inputs: InputSet,
) -> WorstElement:
    found = surveys[output]
    flat = found.doubtful[found.excess.argmax()]
    shape = got[output].shape
    want = torch.take(expected.oracle[output], flat)
    bound = expected.bounds.of(output, want.double())
    return WorstElement(
        workload=workload.name,
        inputs=inputs.label,
        output=output,
        index=_index_of(int(flat), shape),
        got=float(torch.take(got[output], flat)),
        expected=float(want),
        allowed=float(bound) if bound is not None else 0.0,
    )


def _index_of(flat: int, shape: torch.Size) -> tuple[int, ...]:
    """Turn a position in logical order into indices. (PyTorch's own imports half a compiler.)"""
    index = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))
