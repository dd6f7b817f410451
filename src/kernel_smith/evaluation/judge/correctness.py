"""Checks of values on all secret sets of a workload, before anything is timed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from kernel_smith.evaluation.judge.inputs.checks import Check, Foreseen
from kernel_smith.evaluation.judge.inputs.pool import Pool
from kernel_smith.evaluation.judge.inputs.reference import AUTHOR, InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.values.comparison import Comparison
from kernel_smith.evaluation.judge.values.description import check_description
from kernel_smith.evaluation.judge.values.pieces import digest
from kernel_smith.evaluation.judge.values.survey import histogram
from kernel_smith.records import Accuracy, Reason

_system_random = random.SystemRandom()


@dataclass(frozen=True)
class Checked:
    """What correctness found out about a workload that passed."""

    accuracy: Accuracy
    seconds_per_call: float


def check_workload(
    candidate: Participant, pool: Pool, described: dict[str, Any], round_trip: float
) -> Checked:
    """Run every check set, and one of them twice; raise `Rejected` at the first failure."""
    checks = pool.hand_out_checks()
    repeated = _system_random.choice([c for c in checks if c.label == AUTHOR])
    checks = [*checks, repeated]
    found: list[Comparison] = []
    seconds: list[float] = []
    digests: list[list[int]] = []
    for start in range(0, len(checks), pool.checks_at_once):
        group = checks[start : start + pool.checks_at_once]
        sets = [check.draw() for check in group]
        is_known = group == [repeated] and len(digests) == 1
        # First, or both computations would hold memory at once.
        foreseen = [
            None if is_known else check.foresee(inputs)
            for check, inputs in zip(group, sets, strict=True)
        ]
        if pool.is_large:
            pool.reference.make_room()
        batch = _call(candidate, sets, described)
        seconds.append(max(batch.windows.run_wall - round_trip, 1e-7))
        for call, check in enumerate(group):
            if check is repeated:
                digests.append([digest(output) for output in candidate.outputs(call)])
        if not (group == [repeated] and len(digests) == 2 and digests[0] == digests[1]):
            # And not what is known to be right, to the bit.
            found += _compare(candidate, group, foreseen)
        candidate.unbind()
        del sets, foreseen
        if pool.is_large:
            pool.reference.make_room()
    worst = max(found, key=lambda comparison: comparison.excess)
    accuracy = _accuracy(worst, deterministic=digests[0] == digests[1])
    return Checked(accuracy, sum(seconds) / len(checks))


def _accuracy(found: Comparison, *, deterministic: bool | None = None) -> Accuracy:
    """All figures are of one set and output, and so on one scale."""
    return Accuracy(
        candidate_error=found.error,
        reference_error=found.reference_error,
        allowed_error=found.allowed,
        histogram=histogram(found.surveys),
        deterministic=deterministic,
    )


def _call(candidate: Participant, sets: list[InputSet], described: dict[str, Any]) -> Batch:
    """Have some check sets answered, and see that nothing else was touched."""
    candidate.bind(sets, check_signature=True)
    batch = candidate.run(thorough=True)
    check_descriptions(batch, described)
    for call in range(len(sets)):
        if not candidate.inputs_unchanged(call):
            raise Rejected(Reason.INPUTS_MODIFIED, f"call {call} of {len(sets)}")
    if not candidate.parameters_unchanged():
        raise Rejected(Reason.PARAMETERS_MODIFIED)
    return batch


def _compare(
    candidate: Participant, checks: list[Check], foreseen: list[Foreseen]
) -> list[Comparison]:
    """Compare what the bound calls returned; raise `Rejected` at the first that is wrong."""
    found = []
    # Called in random order, compared in this one: a mistake that shows on the author's own inputs
    # is named after them, and so the same each time.
    for call, check in sorted(enumerate(checks), key=lambda item: item[1].label != AUTHOR):
        inputs = candidate.bound(call)
        comparison = check.compare(candidate.outputs(call), inputs, foreseen[call])
        if comparison.reason is not None:
            _look_again(candidate, call)
            raise rejection(comparison)
        found.append(comparison)
    return found


def _look_again(candidate: Participant, call: int) -> None:
    """Was something written to a wrong result after its call was reported finished?"""
    if candidate.fetches and candidate.written_since(call):
        raise Rejected(
            Reason.DEFERRED_WORK, "a result was written to after its call was reported finished"
        )


def answers_right(candidate: Participant, pool: Pool, described: dict[str, Any]) -> bool:
    """Is one call on the author's inputs right? For the test of whether kernels matter."""
    check = pool.author
    inputs = check.draw()
    foreseen = check.foresee(inputs)
    candidate.bind([inputs])
    batch = candidate.run()
    try:
        check_descriptions(batch, described)
    except Rejected:
        return False
    right = check.agrees(candidate.outputs(0), inputs, foreseen)
    candidate.unbind()
    return right


def check_descriptions(batch: Batch, described: dict[str, Any]) -> None:
    """Raise `Rejected` where results of a batch look different from the reference's."""
    check_description(batch.first, described)
    if batch.odd:
        check_description(batch.odd[1], described)
    if batch.shared:
        raise Rejected(
            Reason.OUTPUT_ALIASES_INPUT,
            f"output {min(batch.shared)} changes when an input or a parameter is changed",
        )
    if batch.overlapping:
        raise Rejected(
            Reason.OUTPUT_REUSED,
            f"output {min(batch.overlapping)} changes when another result is overwritten, or "
            "another part of it",
        )


def rejection(comparison: Comparison) -> Rejected:
    """Put a failed comparison into words."""
    assert comparison.reason is not None
    worst = comparison.worst
    message = ""
    if worst is not None:
        message = (
            f"workload {worst.workload}, {worst.inputs} inputs, output {worst.output} at "
            f"{list(worst.index)}: got {float(worst.got):.6g}, "
            f"expected {float(worst.expected):.6g} +- {float(worst.allowed):.2g}"
        )
    return Rejected(comparison.reason, message, worst=worst, accuracy=_accuracy(comparison))
