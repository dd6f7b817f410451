"""Verifies the timed calls themselves: every one of them, against the reference's process."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kernel_smith.evaluation.judge.correctness import check_descriptions, rejection
from kernel_smith.evaluation.judge.inputs.checks import Check
from kernel_smith.evaluation.judge.inputs.pool import Pool
from kernel_smith.evaluation.judge.inputs.reference import AUTHOR, InputSet
from kernel_smith.evaluation.judge.platform.batch import Batch
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.values.accuracy import computable
from kernel_smith.evaluation.judge.values.coarse import count_a_step_apart
from kernel_smith.evaluation.judge.values.comparison import Comparison
from kernel_smith.evaluation.judge.values.survey import count_wrong
from kernel_smith.records import Reason

_SAMPLED_ELEMENTS = 65536  # per batch and output
_ROUNDED_SHARE = 0.01  # of an output, at most

_system_random = random.SystemRandom()


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
        pool: Pool,
        described: dict[str, Any],
        ask_fresh_process: Callable[[InputSet], list[torch.Tensor] | None],
    ) -> None:
        self._candidate = candidate
        self._reference = reference
        self._ask_fresh_process = ask_fresh_process
        self._pool = pool
        self._described = described
        facts = pool.facts
        self._bounds = facts.bounds.beside_reference(facts.reference_error)
        self._hidden_checks = pool.hand_out_hidden_checks()
        self._slipped_in: tuple[InputSet, Check] | None = None  # to the batch that is timed
        self._most_rounded = [0] * len(facts.rtols)  # per output, in calls that were right

    def __call__(self, sets: list[InputSet], batch: Batch) -> None:
        try:
            self._verify(sets, batch)
        finally:
            self._slipped_in = None

    def _verify(self, sets: list[InputSet], batch: Batch) -> None:
        with _right_before_timing():
            check_descriptions(batch, self._described)
            for call in self._to_compare(sets[: batch.calls]):
                self._compare(call, sets[call])
                if not self._pool.is_large:
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
        self._candidate.bind([check.draw() for check in chosen])
        batch = self._candidate.run(thorough=True)
        with _right_before_timing():
            check_descriptions(batch, self._described)
            for call, check in enumerate(chosen):
                inputs = self._candidate.bound(call)
                comparison = check.compare(self._candidate.outputs(call), inputs)
                self._reject_wrong(comparison, inputs)
        self._candidate.unbind()
        return bool(self._hidden_checks)

    def take_hidden_check(self, like: InputSet) -> InputSet | None:
        """A variant that fits into the memory of `like`, for the midst of a timed batch."""
        for index, check in enumerate(self._hidden_checks):
            if check.fits_in_place_of(like):
                del self._hidden_checks[index]
                self._slipped_in = (check.draw(), check)
                return self._slipped_in[0]
        return None

    def _check_of(self, inputs: InputSet) -> Check:
        if self._slipped_in is not None and inputs is self._slipped_in[0]:
            return self._slipped_in[1]
        return self._pool.check(inputs)

    def _to_compare(self, sets: list[InputSet]) -> Iterator[int]:
        """Calls that are to be compared in full, in view of what was learnt from those before."""
        if self._pool.is_large:  # then there are few
            yield from range(len(sets))
            return
        hidden = [call for call, inputs in enumerate(sets) if inputs.label != AUTHOR]
        yield from hidden
        for call in self._suspects(len(sets)):
            if call not in hidden and not self._rounds_as_before(call):
                yield call

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
            far = self._far(output, got[:, positions], want[:, positions])
            suspicious |= far.flatten(1).any(dim=1)
            suspicious[full] |= self._far(output, got[full], want[full]).any()
        return suspicious.nonzero().flatten().tolist()

    def _rounds_as_before(self, call: int) -> bool:
        """Are all outputs as the reference's process has them, but for rounding that is known?"""
        for output, (got, want) in enumerate(self._both(call)):
            if count_wrong(computable(got), computable(want), self._bounds, output):
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
        exact = want.double()
        bound = self._bounds.of(output, exact)
        assert bound is not None
        return ((got.double() - exact).abs() <= bound).logical_not_()

    def _compare(self, call: int, inputs: InputSet) -> None:
        got, want = self._candidate.outputs(call), self._reference.outputs(call)
        comparison = self._check_of(inputs).compare_timed(got, want, inputs)
        self._reject_wrong(comparison, inputs)

    def _reject_wrong(self, comparison: Comparison, inputs: InputSet) -> None:
        if comparison.reason is None:
            return
        rejected = rejection(comparison)
        if self._is_mistaken(inputs):
            raise _Mistake(rejected.reason, rejected.message, **rejected.evidence)
        raise rejected

    def _is_mistaken(self, inputs: InputSet) -> bool:
        """Does a process that has done nothing else get these inputs wrong, too?"""
        if self._pool.is_large:  # there is no memory for one process more
            self._candidate.release()
            self._reference.release()
        answer = self._ask_fresh_process(inputs)
        if answer is None:
            return False
        return self._check_of(inputs).compare(answer, inputs).reason is not None


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
