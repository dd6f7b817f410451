"""Which variants of its inputs a task can be judged on."""

from __future__ import annotations

import torch

from kernel_smith.evaluation.judge.inputs.checks import Block, SmallCheck
from kernel_smith.evaluation.judge.inputs.recipes import Recipe
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    secret_seed,
    vary,
)
from kernel_smith.evaluation.judge.values.accuracy import (
    MOST_BY_ROUNDING,
    is_finite,
    precision_rtol,
)
from kernel_smith.records import Variant, Workload

_MAX_REFERENCE_ERROR = 1e-2


def try_variant(
    reference: Reference, workload: Workload, variant: Variant, extra_rtol: float
) -> SmallCheck | None:
    """Draw a set of this kind. It only counts where the reference itself is finite and accurate."""
    inputs = reference.draw(workload, secret_seed())
    try:
        varied = vary(inputs, variant, secret_seed())
        check = SmallCheck(reference, workload, varied, extra_rtol)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        # The author's own way to say that these inputs are outside the domain.
        return None
    answers = check.expected.reference.tensors
    finite = all(is_finite(t) for t in answers if t.is_floating_point())
    coarse = any(t.is_floating_point() and t.dtype.itemsize < 4 for t in answers)
    limit = _MAX_REFERENCE_ERROR * (8 if coarse else 1)
    return check if finite and check.facts.reference_error <= limit else None


def is_in_domain(
    reference: Reference, workload: Workload, variant: Variant, rtols: list[float]
) -> bool:
    """Is the reference finite on a set of this kind, and the allowed precision of use there?

    `rtols` are those of the author's distribution.
    """
    recipe = Recipe.of([Block(0, 1, variant.value)])
    varied = recipe.make(reference, workload, None)
    try:
        answers = reference.call(workload, varied).tensors
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return False
    if not all(is_finite(t) for t in answers if t.is_floating_point()):
        return False
    del answers
    return not _loses_result(reference, workload, varied, rtols)


def is_beyond_precision(reference: Reference, workload: Workload, check: SmallCheck) -> bool:
    """Does the precision that the task allows lose the result? A tanh of large values does."""
    return _loses_result(reference, workload, check.inputs, check.facts.rtols)


def _loses_result(
    reference: Reference, workload: Workload, inputs: InputSet, rtols: list[float]
) -> bool:
    if all(t.dtype.itemsize < 4 for t in inputs.tensors if t.is_floating_point()):
        return False  # they are as coarse themselves
    return precision_rtol(reference, workload, inputs) > max([MOST_BY_ROUNDING, *rtols])
