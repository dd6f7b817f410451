"""Checks of values on all secret sets of a workload, before and after timing."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.evaluation.judge.inputs.pool import CheckSet, InputPool
from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.platform.participant import Batch, Participant
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.values.accuracy import Expected, computable, expect, scale_of
from kernel_smith.evaluation.judge.values.coarse import count_a_step_apart
from kernel_smith.evaluation.judge.values.comparison import (
    Comparison,
    compare,
    histogram,
    plainly_right,
)
from kernel_smith.evaluation.judge.values.description import check_description
from kernel_smith.records import Accuracy, Reason

_SAMPLED_ELEMENTS = 65536  # per batch and output
_ROUNDED_SHARE = 0.01  # of an output, at most

_system_random = random.SystemRandom()


@dataclass(frozen=True)
class Checked:
    """What correctness found out about a workload that passed."""

    accuracy: Accuracy
    seconds_per_call: float


def check_workload(
    candidate: Participant, pool: InputPool, described: dict[str, Any], round_trip: float
) -> Checked:
    """Run every check set, and one of them twice; raise `Rejected` at the first failure."""
    checks = pool.hand_out_checks()
    repeated = _system_random.choice([c for c in checks if c.inputs.label == "author"])
    checks = [*checks, repeated]
    candidate.bind([check.inputs for check in checks], check_signature=True)
    batch = candidate.run()
    _check_descriptions(batch, described)
    _check_memory(candidate, len(checks))
    worst: Comparison | None = None
    # Called in random order, compared in this one: a mistake that shows on the author's own inputs
    # is named after them, and so the same each time.
    for call, check in sorted(enumerate(checks), key=lambda item: item[1].inputs.label != "author"):
        got, expected = candidate.outputs(call), check.expected
        comparison = compare(got, expected, pool.reference, pool.workload, check.inputs)
        if comparison.reason is not None:
            _look_again(candidate, call, check, pool)
            raise _rejection(comparison, expected)
        if worst is None or (comparison.error or 0.0) > (worst.error or 0.0):
            worst = comparison
    assert worst is not None
    first = checks.index(repeated)
    pairs = zip(candidate.outputs(first), candidate.outputs(len(checks) - 1), strict=True)
    accuracy = Accuracy(
        candidate_error=worst.error or 0.0,
        reference_error=max(c.reference_error for c in checks),
        allowed_error=max(pool.rtols, default=0.0),
        histogram=histogram(worst.ratios),
        deterministic=all(torch.equal(a, b) for a, b in pairs),
    )
    seconds = max(batch.windows.run_wall - round_trip, 1e-7) / len(checks)
    return Checked(accuracy, seconds)


def _look_again(candidate: Participant, call: int, check: CheckSet, pool: InputPool) -> None:
    """Is a result right now that was wrong when its call was reported finished?"""
    if not candidate.fetches:
        return
    candidate.fetch()
    got = candidate.outputs(call)
    comparison = compare(got, check.expected, pool.reference, pool.workload, check.inputs)
    if comparison.reason is None:
        raise Rejected(
            Reason.DEFERRED_WORK, "a result became right after its call was reported finished"
        )


def answers_right(candidate: Participant, pool: InputPool, described: dict[str, Any]) -> bool:
    """Is one call on the author's inputs right? For the test of whether kernels matter."""
    check = pool.author
    candidate.bind([check.inputs])
    batch = candidate.run()
    try:
        _check_descriptions(batch, described)
    except Rejected:
        return False
    return plainly_right(candidate.outputs(0), check.expected)


def _check_descriptions(batch: Batch, described: dict[str, Any]) -> None:
    check_description(batch.first, described)
    if batch.odd:
        check_description(batch.odd[1], described)


def _check_memory(candidate: Participant, calls: int) -> None:
    for call in range(calls):
        if not candidate.inputs_unchanged(call):
            raise Rejected(Reason.INPUTS_MODIFIED, f"call {call} of {calls}")
    if not candidate.parameters_unchanged():
        raise Rejected(Reason.PARAMETERS_MODIFIED)


def _rejection(comparison: Comparison, expected: Expected) -> Rejected:
    assert comparison.reason is not None
    worst = comparison.worst
    message = ""
    if worst is not None:
        message = (
            f"workload {worst.workload}, {worst.inputs} inputs, output {worst.output} at "
            f"{list(worst.index)}: got {float(worst.got):.6g}, "
            f"expected {float(worst.expected):.6g} +- {float(worst.allowed):.2g}"
        )
    accuracy = Accuracy(
        candidate_error=comparison.error,
        reference_error=expected.reference_error,
        allowed_error=expected.rtol,
        histogram=histogram(comparison.ratios),
    )
    return Rejected(comparison.reason, message, worst=worst, accuracy=accuracy)


class TimedVerifier:
    """Verifies the timed calls themselves, against the reference process's outputs.

    Every call is checked on secret positions; one call per batch, chosen after it ran, in full.
    Whatever looks wrong is decided by the oracle. Where it has found that a call rounded some
    values of one byte differently, about as many in later calls are nothing to ask it about.
    """

    def __init__(
        self,
        candidate: Participant,
        reference: Participant,
        pool: InputPool,
        described: dict[str, Any],
        ask_fresh_process: Callable[[InputSet], list[torch.Tensor] | None],
    ) -> None:
        self._candidate = candidate
        self._reference = reference
        self._ask_fresh_process = ask_fresh_process
        self._stock = pool
        self._described = described
        expected = pool.author.expected
        self._rtols = [rtol + expected.reference_error for rtol in pool.rtols]
        self._scales = [scale_of(t) if t.is_floating_point() else 0.0 for t in expected.oracle]
        self._tolerance = pool.reference.task.tolerance
        self._hidden_checks = pool.hand_out_hidden_checks()
        self._most_rounded = [0] * len(expected.oracle)  # per output, in calls that were right

    def __call__(self, sets: list[InputSet], batch: Batch) -> None:
        with _right_before_timing():
            _check_descriptions(batch, self._described)
            for call in self._suspects(batch.calls):
                if not self._rounds_as_before(call):
                    self._ask_oracle(sets[call], call)
                    self._note_rounding(call)
            chosen = _system_random.randrange(batch.calls)
            if not self._candidate.inputs_unchanged(chosen):
                raise Rejected(Reason.INPUTS_MODIFIED, "during timing")
            if not self._candidate.parameters_unchanged():
                raise Rejected(Reason.PARAMETERS_MODIFIED, "during timing")

    def check_hidden(self) -> bool:
        """Variants in the midst of timing, a few at a time; are more of them left?

        What a kernel survived when it was checked it must survive now. Such a batch is not timed,
        which the candidate cannot know.
        """
        count = min(self._candidate.capacity, len(self._hidden_checks))
        chosen, self._hidden_checks = self._hidden_checks[:count], self._hidden_checks[count:]
        if not chosen:
            return False
        self._candidate.bind([check.inputs for check in chosen])
        batch = self._candidate.run()
        with _right_before_timing():
            _check_descriptions(batch, self._described)
            for call, check in enumerate(chosen):
                self._compare(call, check.inputs, check.expected)
        return bool(self._hidden_checks)

    def take_hidden_check(self, like: InputSet) -> InputSet | None:
        """A variant that fits into the memory of `like`, for the midst of a timed batch."""
        for index, check in enumerate(self._hidden_checks):
            if check.inputs.fits_in_place_of(like):
                return self._hidden_checks.pop(index).inputs
        return None

    def _suspects(self, calls: int) -> list[int]:
        """Calls whose outputs differ from the reference's by more than the tolerance."""
        full = _system_random.randrange(calls)
        mine, theirs = self._candidate.output_rows(calls), self._reference.output_rows(calls)
        suspicious = torch.zeros(calls, dtype=torch.bool, device=mine[0].device)
        for output, (got, want) in enumerate(zip(mine, theirs, strict=True)):
            size = want.shape[1]
            if size == 0:
                continue
            count = min(size, max(64, _SAMPLED_ELEMENTS // calls))
            positions = torch.randint(size, (count,), device=want.device)
            got, want = computable(got), computable(want)
            suspicious |= self._far(output, got[:, positions], want[:, positions]).any(dim=1)
            suspicious[full] |= self._far(output, got[full], want[full]).any()
        return suspicious.nonzero().flatten().tolist()

    def _rounds_as_before(self, call: int) -> bool:
        """Are all outputs as the reference's process has them, but for rounding that is known?"""
        for output, (got, want) in enumerate(self._both(call)):
            if self._far(output, computable(got), computable(want)).any():
                known = min(2 * self._most_rounded[output], _ROUNDED_SHARE * want.numel())
                count = count_a_step_apart(got, want)
                if count is None or count > known:
                    return False
        return True

    def _note_rounding(self, call: int) -> None:
        for output, (got, want) in enumerate(self._both(call)):
            count = count_a_step_apart(got, want) or 0
            self._most_rounded[output] = max(self._most_rounded[output], count)

    def _both(self, call: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return zip(self._candidate.outputs(call), self._reference.outputs(call), strict=True)

    def _far(self, output: int, got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
        if not want.is_floating_point():
            return got != want
        rtol, atol = self._rtols[output], self._rtols[output] * self._scales[output]
        if self._tolerance is not None:
            rtol, atol = self._tolerance.rtol, self._tolerance.atol
        exact = want.double()
        return ((got.double() - exact).abs() <= atol + rtol * exact.abs()).logical_not_()

    def _ask_oracle(self, inputs: InputSet, call: int) -> None:
        pool = self._stock
        self._compare(call, inputs, expect(pool.reference, pool.workload, inputs, pool.extra_rtol))

    def _compare(self, call: int, inputs: InputSet, expected: Expected) -> None:
        got = self._candidate.outputs(call)
        pool = self._stock
        comparison = compare(got, expected, pool.reference, pool.workload, inputs)
        if comparison.reason is None:
            return
        rejection = _rejection(comparison, expected)
        if self._is_mistaken(inputs, expected):
            raise _Mistake(rejection.reason, rejection.message, **rejection.evidence)
        raise rejection

    def _is_mistaken(self, inputs: InputSet, expected: Expected) -> bool:
        """Does a process that has done nothing else get these inputs wrong, too?"""
        answer = self._ask_fresh_process(inputs)
        if answer is None:
            return False
        pool = self._stock
        comparison = compare(answer, expected, pool.reference, pool.workload, inputs)
        return comparison.reason is not None


class _Mistake(Rejected):
    """Wrong whoever asks and whenever: an error that the checks happened to miss, not a trick."""


@contextlib.contextmanager
def _right_before_timing() -> Iterator[None]:
    """Whatever fails now did not fail when it was checked."""
    try:
        yield
    except _Mistake:
        raise
    except Rejected as rejected:
        raise Rejected(
            Reason.WRONG_WHEN_TIMED,
            f"{rejected.reason.value}: {rejected.message}",
            **rejected.evidence,
        ) from None
