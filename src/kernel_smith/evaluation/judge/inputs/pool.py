"""Secret input sets, prepared ahead of the candidates that will see them.

Per workload the judge keeps two kinds. *Check sets* come with the right answer: the author's
distribution under several seeds, and its variants. *Timing sets* are inputs alone: the reference
process answers them in the same round as the candidate.

Every candidate runs in a process of its own that keeps nothing, so a set may serve several
candidates, but none sees the same one twice: timing hands them out without replacement, and when
they run out it mixes the elements of two of them, as long as there are mixtures left. Whenever the
judge has nothing else to do it redraws what was used, so that feedback about one candidate says
nothing about the inputs of the next.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial

from kernel_smith.evaluation.judge.inputs.mixing import BlockMixer, Mixer
from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference, secret_seed, vary
from kernel_smith.evaluation.judge.values.accuracy import (
    MOST_BY_ROUNDING,
    Expected,
    expect,
    is_finite,
    precision_rtol,
)
from kernel_smith.records import Variant, Workload

_MAX_BYTES = {"cpu": 192 << 20, "cuda": 256 << 20}
_MAX_KEPT_ANSWER = {"cpu": 1 << 40, "cuda": 64 << 20}
_MAX_HIDDEN_BYTES = {"cpu": 1 << 40, "cuda": 256 << 20}
_HIDDEN_CHECKS = {"cpu": 2, "cuda": 1}  # per variant; on a GPU a few of them are used at most
_MAX_SECONDS = 0.5
_MIN_TIMING_SETS = 4
_MAX_TIMING_SETS = 4096
_ENOUGH_TO_MIX = {"cpu": 4096, "cuda": 64}  # on a GPU to draw takes longer than to mix
_MAX_REFERENCE_ERROR = 1e-2
_BLOCK_SETS, _BLOCK_BYTES = 128, 256 << 20  # mixed at once
_MIXING_TRIALS = 12
_MIXING_SECONDS = 0.25

_system_random = random.SystemRandom()


class CheckSet:
    """One input set and its right answer, which is computed again each time if it is large."""

    def __init__(self, inputs: InputSet, answer: Callable[[], Expected], most_bytes: int) -> None:
        self.inputs = inputs
        self.used = False
        self._answer = answer
        expected = answer()
        self.rtols = expected.rtols
        self.reference_error = expected.reference_error
        kept = [*expected.reference.tensors, *expected.oracle]
        self.nbytes = sum(tensor.nbytes for tensor in (*inputs.tensors, *kept))
        self._kept = expected if self.nbytes <= most_bytes else None

    @property
    def expected(self) -> Expected:
        return self._kept or self._answer()


class InputPool:
    """The prepared sets of one workload."""

    def __init__(self, reference: Reference, workload: Workload, seeds: int) -> None:
        self.reference = reference
        self.workload = workload
        self.extra_rtol = precision_rtol(
            reference, workload, reference.draw(workload, secret_seed())
        )
        self._kind = reference.device
        self.checks = [self._answered(self._draw()) for _ in range(seeds)]
        self.answer = self.author.expected.reference  # what a call returns
        self.left_out: list[str] = []
        for variant in reference.task.variants:
            check = self._try_variant(variant)
            if check is None or self._is_beyond_precision(check):
                self.left_out.append(variant.value)
            else:
                self.checks.append(check)
        self.hidden_checks = self._draw_hidden_checks()
        self._pool: list[InputSet] = []
        self._fill_pool(min(_ENOUGH_TO_MIX[self._kind], _MAX_TIMING_SETS))
        self._seen: set[int] = set()
        self._mixer = Mixer(self.author.inputs)
        self.mixes = self._mixing_works()
        if not self.mixes:
            self._fill_pool(_MAX_TIMING_SETS)

    @property
    def calls_to_check(self) -> int:
        """All check sets, and one of them a second time."""
        return len(self.checks) + 1

    @property
    def author(self) -> CheckSet:
        return self.checks[0]

    @property
    def rtols(self) -> list[float]:
        """The tolerance of each output on the author's distribution."""
        author = [c.rtols for c in self.checks if c.inputs.label == "author"]
        return [max(same) for same in zip(*author, strict=True)]

    def hand_out_checks(self) -> list[CheckSet]:
        """All check sets in random order, so that position says nothing."""
        for check in self.checks:
            check.used = True
        return _system_random.sample(self.checks, len(self.checks))

    def hand_out_hidden_checks(self) -> list[CheckSet]:
        """Variants for the midst of timing, in random order."""
        for check in self.hidden_checks:
            check.used = True
        return _system_random.sample(self.hidden_checks, len(self.hidden_checks))

    def timing_sets(self) -> Iterator[InputSet]:
        """An endless supply for one candidate, each set with content it has not seen."""
        order = _system_random.sample(range(len(self._pool)), len(self._pool))
        for index in order:
            self._seen.add(index)
            yield self._pool[index]
        dice = random.Random(secret_seed())  # to ask the system each time would take milliseconds
        served: set[tuple[int, int, int]] = set()
        blocks = BlockMixer(self._mixer, self._pool) if self._mixes_in_blocks() else None
        while True:
            if not self.mixes:
                yield self._draw()
                continue
            fresh = self._new_mixtures(dice, served)
            served.update(fresh)
            if not fresh:
                yield self._draw()
            elif blocks is not None:
                yield from blocks.mix(fresh)
            else:
                for left, right, shift in fresh:
                    yield self._mixer.mix(self._pool[left], self._pool[right], shift)

    def _new_mixtures(
        self, dice: random.Random, served: set[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Pairs of sets with a shift that this candidate has not seen; none if luck fails."""
        size = sum(t.nbytes for t in self.author.inputs.tensors) or 1
        most = max(1, min(_BLOCK_SETS, _BLOCK_BYTES // size)) if self._kind == "cuda" else 1
        drawn = set()
        for _ in range(most):
            left, right = dice.sample(range(len(self._pool)), 2)
            drawn.add((left, right, self._mixer.choose_shift(dice)))
        return [mixture for mixture in drawn if mixture not in served]

    def _mixes_in_blocks(self) -> bool:
        """Where asking for one mixture at a time would take too long."""
        plain = all(tensor.is_contiguous() for tensor in self.author.inputs.tensors)
        return self.mixes and plain and self._kind == "cuda"

    def redraw_one(self) -> bool:
        """Replace one used set by a fresh one; False when none is left to replace."""
        for checks in (self.checks, self.hidden_checks):
            for index, check in enumerate(checks):
                if check.used:
                    checks[index] = self._redrawn(check)
                    check.used = False
                    return True
        if self._seen:
            self._pool[self._seen.pop()] = self._draw()
            return True
        return False

    def _draw(self) -> InputSet:
        return self.reference.draw(self.workload, secret_seed())

    def _answered(self, inputs: InputSet) -> CheckSet:
        answer = partial(expect, self.reference, self.workload, inputs, self.extra_rtol)
        return CheckSet(inputs, answer, _MAX_KEPT_ANSWER[self._kind])

    def _redrawn(self, check: CheckSet) -> CheckSet:
        """Another set of the same kind; the same one where the domain leaves no other."""
        label = check.inputs.label
        if label == "author":
            return self._answered(self._draw())
        return self._try_variant(Variant(label)) or check

    def _draw_hidden_checks(self) -> list[CheckSet]:
        """More sets of every variant."""
        labels = [c.inputs.label for c in self.checks if c.inputs.label != "author"]
        labels *= _HIDDEN_CHECKS[self._kind]
        if len(labels) * self.author.nbytes > _MAX_HIDDEN_BYTES[self._kind]:
            return []
        drawn = [self._try_variant(Variant(label)) for label in labels]
        return [check for check in drawn if check is not None]

    def _try_variant(self, variant: Variant) -> CheckSet | None:
        """A variant only counts where the reference itself is finite and accurate."""
        inputs = self._draw()
        try:
            check = self._answered(vary(inputs, variant, secret_seed()))
        except Exception:
            # The author's own way to say that these inputs are outside the domain.
            return None
        answers = check.expected.reference.tensors
        finite = all(is_finite(t) for t in answers if t.is_floating_point())
        coarse = any(t.is_floating_point() and t.dtype.itemsize < 4 for t in answers)
        limit = _MAX_REFERENCE_ERROR * (8 if coarse else 1)
        return check if finite and check.reference_error <= limit else None

    def _is_beyond_precision(self, check: CheckSet) -> bool:
        """Does the precision that the task allows lose the result? A tanh of large values does."""
        if all(t.dtype.itemsize < 4 for t in check.inputs.tensors if t.is_floating_point()):
            return False  # they are as coarse themselves
        rtol = precision_rtol(self.reference, self.workload, check.inputs)
        return rtol > max([MOST_BY_ROUNDING, *check.rtols])

    def _fill_pool(self, most: int) -> None:
        pool = self._pool
        size = sum(t.nbytes for t in self.author.inputs.tensors) or 1
        deadline = time.monotonic() + _MAX_SECONDS
        while len(pool) < most and (len(pool) + 1) * size <= _MAX_BYTES[self._kind]:
            pool.append(self._draw())
            if len(pool) >= _MIN_TIMING_SETS and time.monotonic() > deadline:
                break
        while len(pool) < _MIN_TIMING_SETS:
            pool.append(self._draw())

    def _mixing_works(self) -> bool:
        """Mixed sets must stay in the reference's domain: same shapes, finite results."""
        first = self._pool[0]
        shapes = [t.shape for t in first.tensors]
        for other in self._pool[1:]:
            if other.template != first.template or [t.shape for t in other.tensors] != shapes:
                return False
        if not self._mixer.changes_something:
            return False
        deadline = time.monotonic() + _MIXING_SECONDS
        for trial in range(_MIXING_TRIALS):
            if not self._stays_in_domain(*_system_random.sample(self._pool, 2)):
                return False
            if trial > 0 and time.monotonic() > deadline:
                break
        return True

    def _stays_in_domain(self, left: InputSet, right: InputSet) -> bool:
        mixed = self._mixer.mix(left, right, self._mixer.choose_shift(_system_random))
        try:
            answers = self.reference.call(self.workload, mixed).tensors
        except Exception:
            return False
        return all(is_finite(t) for t in answers if t.is_floating_point())
