"""Which variants of its inputs a task can be judged on."""

from __future__ import annotations

import functools

import torch

from kernel_smith.evaluation.judge.inputs.checks import Block, SmallCheck
from kernel_smith.evaluation.judge.inputs.recipes import Recipe
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    secret_seed,
)
from kernel_smith.evaluation.judge.inputs.varying import vary
from kernel_smith.evaluation.judge.values.accuracy import (
    MOST_BY_ROUNDING,
    is_finite,
    parts,
    precision_rtol,
)
from kernel_smith.evaluation.judge.values.jumps import is_few
from kernel_smith.evaluation.judge.values.pieces import pieces
from kernel_smith.evaluation.judge.values.rounding_noise import RoundingNoise
from kernel_smith.records import Variant, Workload

_MAX_REFERENCE_ERROR = 1e-2
_NOISY_CALLS = 4


def offered_variants(reference: Reference, workload: Workload) -> list[Variant]:
    """The variants that its task names and that change something."""
    chosen = list(reference.task.variants)
    if Variant.EQUAL in chosen and not any(reference.free_integers(workload)):
        chosen.remove(Variant.EQUAL)
    return chosen


def try_variant(
    reference: Reference, workload: Workload, variant: Variant, extra_rtol: float
) -> SmallCheck | None:
    """Draw a set of this kind. It only counts where the reference itself is finite and accurate."""
    inputs = reference.draw(workload, secret_seed())
    try:
        varied = vary(inputs, variant, secret_seed(), reference.free_integers(workload))
        check = SmallCheck(reference, workload, varied, extra_rtol)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        # The author's own way to say that these inputs are outside the domain.
        return None
    answers = [t for t in check.expected.reference.tensors if t.is_floating_point()]
    coarse = any(t.dtype.itemsize < 4 for t in answers)
    limit = _MAX_REFERENCE_ERROR * (8 if coarse else 1)
    if check.facts.reference_error > limit or _chooses_by_rounding(reference, workload, check):
        return None
    return check if all(is_finite(t) and not _vanishes(t) for t in answers) else None


def is_in_domain(
    reference: Reference, workload: Workload, variant: Variant, rtols: list[float]
) -> bool:
    """Is the reference finite on a set of this kind, and the allowed precision of use there?

    `rtols` are those of the author's distribution.
    """
    recipe = Recipe.of([Block(0, 1, variant.value)])
    draw = functools.partial(reference.draw, workload)
    varied = recipe.make(draw, None, reference.free_integers(workload))
    try:
        answers = reference.call(workload, varied).tensors
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return False
    floating = [t for t in answers if t.is_floating_point()]
    if not all(is_finite(t) and not _vanishes(t) for t in floating):
        return False
    del answers, floating
    return not _loses_result(reference, workload, varied, rtols)


def is_beyond_precision(reference: Reference, workload: Workload, check: SmallCheck) -> bool:
    """Does the precision that the task allows lose the result? A tanh of large values does."""
    return _loses_result(reference, workload, check.inputs, check.facts.rtols)


def _chooses_by_rounding(reference: Reference, workload: Workload, check: SmallCheck) -> bool:
    """Does it hang on how arithmetic rounds which whole numbers are the answer? So a router chooses
    where its logits are so small that all experts are equally likely to the last bit."""
    if all(t.is_floating_point() for t in check.expected.oracle):
        return False
    try:
        with RoundingNoise(keep_equal=True):
            calls = [reference.call(workload, check.inputs) for _ in range(_NOISY_CALLS)]
    except Exception:  # it does something that noise cannot be put into
        return False
    return any(
        not is_few(int((noisy != right).sum()), right.numel())
        for call in calls
        for noisy, right in zip(parts(call.tensors), check.expected.oracle, strict=True)
        if not right.is_floating_point()
    )


def _vanishes(answer: torch.Tensor) -> bool:
    """Has it become nothing, as behind a ReLU? To be off by anything would be too much then."""
    if not answer.numel():
        return False
    largest = max(float(piece.float().abs().amax()) for _, (piece,) in pieces(answer))
    return largest < torch.finfo(torch.float32).tiny


def _loses_result(
    reference: Reference, workload: Workload, inputs: InputSet, rtols: list[float]
) -> bool:
    if all(t.dtype.itemsize < 4 for t in inputs.tensors if t.is_floating_point()):
        return False  # they are as coarse themselves
    return precision_rtol(reference, workload, inputs) > max([MOST_BY_ROUNDING, *rtols])
