"""Which variants of its inputs a task can be judged on."""

from __future__ import annotations

import torch

from kernel_smith.evaluation.judge.inputs.checks import SmallCheck
from kernel_smith.evaluation.judge.inputs.reference import Reference, secret_seed, vary
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


def is_in_domain(reference: Reference, workload: Workload, variant: Variant) -> bool:
    """Is the reference finite on a set of this kind?"""
    varied = vary(reference.draw(workload, secret_seed()), variant, secret_seed())
    try:
        answers = reference.call(workload, varied).tensors
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return False
    return all(is_finite(t) for t in answers if t.is_floating_point())


def is_beyond_precision(reference: Reference, workload: Workload, check: SmallCheck) -> bool:
    """Does the precision that the task allows lose the result? A tanh of large values does."""
    if all(t.dtype.itemsize < 4 for t in check.inputs.tensors if t.is_floating_point()):
        return False  # they are as coarse themselves
    rtol = precision_rtol(reference, workload, check.inputs)
    return rtol > max([MOST_BY_ROUNDING, *check.facts.rtols])
