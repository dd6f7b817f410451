"""What each admission finding says, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kernel_smith.records.task import Admission


class FindingText(NamedTuple):
    sentence: str
    remedy: str


_VARY = "draw inputs for which the output varies"

FINDINGS = {
    Admission.CONSTANT_OUTPUT: FindingText("every element of the output is the same", _VARY),
    Admission.ZERO_OUTPUT: FindingText("the output is zero", _VARY),
    Admission.INPUT_INDEPENDENT: FindingText(
        "other inputs give the same output", "draw inputs that the output depends on"
    ),
    Admission.SEED_INDEPENDENT: FindingText(
        "get_inputs returns the same whatever the seed",
        "draw the inputs in get_inputs, e.g. by torch.randn",
    ),
    Admission.NON_FINITE: FindingText(
        "the output holds NaN or infinity", "draw inputs for which the output is finite"
    ),
    Admission.ACCEPTS_ZEROS: FindingText(
        "zeros would be accepted as a right answer, or as half of it",
        f"{_VARY}, and draw nothing at random in forward",
    ),
    Admission.ACCEPTS_MEAN: FindingText(
        "the mean of the output would be accepted as a right answer",
        f"{_VARY}, and draw nothing at random in forward",
    ),
    Admission.RANDOM_REFERENCE: FindingText(
        "the same inputs give another output (dropout? train mode?)",
        "put the reference into evaluation mode, where dropout does nothing: end Model.__init__ "
        "with self.eval(); and draw in get_inputs what forward draws itself",
    ),
    Admission.MUTATES_INPUTS: FindingText(
        "the reference changes its inputs", "have forward change a copy: x = x.clone()"
    ),
}
# A reference that is random looks as if zeros or its mean would do: what follows from it is no
# reason of its own.
_FOLLOWS_FROM_CHANCE = {Admission.ACCEPTS_ZEROS, Admission.ACCEPTS_MEAN}


def remedy_for(findings: Collection[Admission]) -> str:
    """Return what to do about these findings, each remedy once."""
    causes = [
        finding
        for finding in FINDINGS
        if finding in findings
        and not (Admission.RANDOM_REFERENCE in findings and finding in _FOLLOWS_FROM_CHANCE)
    ]
    return "; ".join(dict.fromkeys(FINDINGS[finding].remedy for finding in causes))
