"""Secret input sets, prepared ahead of the candidates that will see them.

Per workload the judge keeps two kinds. *Check sets* come with the right answer: the author's
distribution under several seeds, and its variants. *Timing sets* are inputs alone: the reference
process answers them in the same round as the candidate.

A candidate sees no set twice: timing hands them out without replacement, and when they run out it
mixes the elements of two of them, as long as there are mixtures left. What was told about a set, or
what a program that failed may have told of it in the text of an exception, helps nobody: all that
such a candidate saw is redrawn before the next one is checked. What others saw is redrawn whenever
the judge has nothing else to do.

Sets of a workload too large for that are drawn when they are needed: see `large_pool.py`.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import torch

from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.checks import Check, Facts, SmallCheck
from kernel_smith.evaluation.judge.inputs.first_look import FirstLook
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.inputs.large_pool import LargePool
from kernel_smith.evaluation.judge.inputs.mixing import BlockMixer, Mixer
from kernel_smith.evaluation.judge.inputs.reference import (
    AUTHOR,
    InputSet,
    Reference,
    Result,
    secret_seed,
)
from kernel_smith.evaluation.judge.inputs.variants import (
    is_beyond_precision,
    offered_variants,
    try_variant,
)
from kernel_smith.evaluation.judge.values.accuracy import is_finite, precision_rtol
from kernel_smith.records import Variant, Workload

_SHARE_OF_HIDDEN = 2  # of what may be kept
_MAX_SECONDS = 0.5  # of drawing sets for timing
_MIN_TIMING_SETS = 4
_SETS_AT_FIRST = 64  # more are drawn when a candidate has seen these
_MAX_TIMING_SETS = 4096
_ENOUGH_TO_MIX = {"cpu": 4096, "cuda": 64}  # on a GPU to draw takes longer than to mix
_BLOCK_SETS, _BLOCK_BYTES = 128, 256 << 20  # mixed at once
_MIXING_TRIALS = 12
_DRAWS_COMPARED = 4
_MIXING_SECONDS = 0.25

_system_random = random.SystemRandom()


class Pool(Protocol):
    """The sets of one workload, kept or drawn when needed."""

    reference: Reference
    workload: Workload
    footprint: Footprint
    answer: Result  # what a call returns; its tensors may lack content
    left_out: list[str]
    is_large: bool

    @property
    def checks(self) -> Sequence[Check]: ...  # to look at; candidates get those handed out
    @property
    def author(self) -> Check: ...
    @property
    def layouts(self) -> list[InputSet]: ...  # an example of every layout; the same
    @property
    def facts(self) -> Facts: ...  # of the author's distribution
    @property
    def note(self) -> str: ...
    @property
    def calls_to_check(self) -> int: ...
    @property
    def checks_at_once(self) -> int: ...
    def hand_out_checks(self) -> list[Check]: ...
    def hand_out_hidden_checks(self) -> list[Check]: ...
    def timing_sets(self) -> Iterator[InputSet]: ...
    @property
    def can_replace_inputs(self) -> bool:
        """Can a call get other inputs when it has been told its numbers already?"""

    def in_place_of(self, bound: InputSet, drawn: InputSet) -> InputSet:
        """What has been drawn, with the numbers of the call whose inputs it is to replace."""

    def check(self, inputs: InputSet) -> Check: ...
    def reveal(self) -> None:
        """Something has been told about sets that were handed out."""

    def redraw_one(self) -> bool: ...


def make_pool(
    reference: Reference, workload: Workload, seeds: int, budget: Budget, look: FirstLook
) -> Pool:
    """Prepare the sets of a workload, according to its size."""
    if not look.is_large:
        return InputPool(reference, workload, look.footprint, seeds, budget.kept)
    try:
        return LargePool(reference, workload, look, budget.at_once)
    except torch.OutOfMemoryError:
        if look.rows is not None or not reference.affords_oracle(workload):
            raise
    reference.do_without_oracle(workload)  # it took more than was expected
    reference.give_memory_back()
    return LargePool(reference, workload, look, budget.at_once)


class InputPool:
    """The prepared sets of one workload."""

    is_large = False
    note = ""

    def __init__(
        self,
        reference: Reference,
        workload: Workload,
        footprint: Footprint,
        seeds: int,
        most_bytes: int,
    ) -> None:
        self.reference = reference
        self.workload = workload
        self.footprint = footprint
        self._most_bytes = most_bytes
        self.extra_rtol = precision_rtol(
            reference, workload, reference.draw(workload, secret_seed())
        )
        self._kind = reference.device
        self.checks = [self.check(self._draw()) for _ in range(seeds)]
        self.answer = self.author.expected.reference
        self.left_out: list[str] = []
        for variant in offered_variants(reference, workload):
            check = self._try_variant(variant)
            if check is None or is_beyond_precision(reference, workload, check):
                self.left_out.append(variant.value)
            else:
                self.checks.append(check)
        self.hidden_checks = self._draw_hidden_checks()
        self._pool: list[InputSet] = []
        self._seconds_drawing = 0.0
        self._mixer: Mixer | None = None
        self._fill_pool()
        self._seen: set[int] = set()
        self._revealed = False
        self._mixer = self._find_mixer()

    @property
    def calls_to_check(self) -> int:
        """All check sets, and one of them a second time."""
        return len(self.checks) + 1

    @property
    def checks_at_once(self) -> int:
        return self.calls_to_check

    @property
    def mixes(self) -> bool:
        """Are more sets made from those that were drawn?"""
        return self._mixer is not None

    @property
    def author(self) -> SmallCheck:
        return self.checks[0]

    @property
    def layouts(self) -> list[InputSet]:
        return [check.inputs for check in self.checks]

    @property
    def facts(self) -> Facts:
        """What the oracle says of the author's distribution."""
        author = [c.facts.bounds for c in self.checks if c.label == AUTHOR]
        rtols = [max(same) for same in zip(*(bounds.rtols for bounds in author), strict=True)]
        jumps = [
            max(filter(None, (bounds.jumps_of(output) for bounds in author)), default=None)
            for output in range(len(rtols))
        ]
        facts = self.author.facts
        return facts._replace(bounds=replace(facts.bounds, rtols=rtols, jumps=jumps))

    def hand_out_checks(self) -> list[Check]:
        """All check sets in random order, so that position says nothing. None is known already."""
        while self._revealed and self.redraw_one():
            pass
        self._revealed = False
        for check in self.checks:
            check.used = True
        return _system_random.sample(self.checks, len(self.checks))

    def reveal(self) -> None:
        self._revealed = True

    def hand_out_hidden_checks(self) -> list[Check]:
        """Variants for the midst of timing, in random order."""
        for check in self.hidden_checks:
            check.used = True
        hidden = self.hidden_checks
        return _system_random.sample(hidden, len(hidden))

    def timing_sets(self) -> Iterator[InputSet]:
        """An endless supply for one candidate, each set with content it has not seen."""
        order = _system_random.sample(range(len(self._pool)), len(self._pool))
        for index in order:
            self._seen.add(index)
            yield self._pool[index]
        while self._may_keep_more():
            self._seen.add(len(self._pool))
            yield self._draw_and_keep()
        dice = random.Random(secret_seed())  # to ask the system each time would take milliseconds
        served: set[tuple[int, int, int]] = set()
        mixer = self._mixer
        while mixer is None:
            yield self._draw()
        blocks = BlockMixer(mixer, self._pool) if self._mixes_in_blocks() else None
        while True:
            fresh = self._new_mixtures(dice, served)
            served.update(fresh)
            if not fresh:
                yield self._draw()
            elif blocks is not None:
                yield from blocks.mix(fresh)
            else:
                for left, right, shift in fresh:
                    yield mixer.mix(self._pool[left], self._pool[right], shift)

    @functools.cached_property
    def can_replace_inputs(self) -> bool:
        """Where numbers differ from one set to the next, those of one must go with another's
        tensors: how many rows count, say, does not tell how many there are."""
        first, *others = self._pool
        if all(other.fits_in_place_of(first) for other in others):
            return True
        pairs = [_system_random.sample(self._pool, 2) for _ in range(_MIXING_TRIALS)]
        swapped = [(left.with_numbers_of(right), right) for left, right in pairs]
        return all(
            drawn.fits_in_place_of(bound) and self._is_in_domain(drawn) for drawn, bound in swapped
        )

    def in_place_of(self, bound: InputSet, drawn: InputSet) -> InputSet:
        return drawn.with_numbers_of(bound)

    def _new_mixtures(
        self, dice: random.Random, served: set[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Pairs of sets with a shift that this candidate has not seen; none if luck fails."""
        size = sum(t.nbytes for t in self.author.inputs.tensors) or 1
        most = max(1, min(_BLOCK_SETS, _BLOCK_BYTES // size)) if self._kind == "cuda" else 1
        drawn = set()
        for _ in range(most):
            left, right = dice.sample(range(len(self._pool)), 2)
            drawn.add((left, right, Mixer.choose_shift(dice)))
        return [mixture for mixture in drawn if mixture not in served]

    def _mixes_in_blocks(self) -> bool:
        """Where asking for one mixture at a time would take too long."""
        plain = all(tensor.is_contiguous() for tensor in self.author.inputs.tensors)
        return plain and self._kind == "cuda"

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

    def check(self, inputs: InputSet) -> SmallCheck:
        """A check of these very inputs."""
        return SmallCheck(self.reference, self.workload, inputs, self.extra_rtol)

    def _redrawn(self, check: SmallCheck) -> SmallCheck:
        """Another set of the same kind; the same one where the domain leaves no other."""
        if check.label == AUTHOR:
            return self.check(self._draw())
        return self._try_variant(Variant(check.label)) or check

    def _draw_hidden_checks(self) -> list[SmallCheck]:
        """More sets of every variant, as many as there is room for."""
        labels = [c.label for c in self.checks if c.label != AUTHOR]
        each = self.footprint.inputs + 3 * self.footprint.outputs
        labels = labels[: self._most_bytes // _SHARE_OF_HIDDEN // max(each, 1)]
        drawn = [self._try_variant(Variant(label)) for label in labels]
        return [check for check in drawn if check is not None]

    def _try_variant(self, variant: Variant) -> SmallCheck | None:
        return try_variant(self.reference, self.workload, variant, self.extra_rtol)

    def _fill_pool(self) -> None:
        """Draw what a short measuring needs. Most candidates are measured shortly, or fail."""
        at_first = min(_SETS_AT_FIRST, _ENOUGH_TO_MIX[self._kind])
        while len(self._pool) < at_first and self._may_keep_more():
            self._draw_and_keep()
        while len(self._pool) < _MIN_TIMING_SETS:
            self._draw_and_keep()

    def _may_keep_more(self) -> bool:
        """Is there memory and time for another set that is drawn, and not mixed?"""
        enough = _MAX_TIMING_SETS if self._mixer is None else _ENOUGH_TO_MIX[self._kind]
        size = sum(t.nbytes for t in self.author.inputs.tensors) or 1
        return (
            len(self._pool) < min(enough, _MAX_TIMING_SETS)
            and (len(self._pool) + 1) * size <= self._most_bytes
            and self._seconds_drawing < _MAX_SECONDS
        )

    def _draw_and_keep(self) -> InputSet:
        begun = time.monotonic()
        self._pool.append(self._draw())
        self._seconds_drawing += time.monotonic() - begun
        return self._pool[-1]

    def _find_mixer(self) -> Mixer | None:
        """Mixed sets must stay in the reference's domain: same shapes, finite results. And nothing
        in them may be the same as in another."""
        first, *others = self._pool
        if not all(other.fits_in_place_of(first) for other in others):
            return None
        mixer = Mixer(self._pool[:_DRAWS_COMPARED])
        # To draw takes a GPU long, beside calls of microseconds.
        is_new = mixer.changes_all_but_few if self._kind == "cuda" else mixer.changes_all
        if not is_new:
            return None
        deadline = time.monotonic() + _MIXING_SECONDS
        for trial in range(_MIXING_TRIALS):
            if not self._stays_in_domain(mixer, *_system_random.sample(self._pool, 2)):
                return None
            if trial > 0 and time.monotonic() > deadline:
                break
        return mixer

    def _stays_in_domain(self, mixer: Mixer, left: InputSet, right: InputSet) -> bool:
        return self._is_in_domain(mixer.mix(left, right, Mixer.choose_shift(_system_random)))

    def _is_in_domain(self, inputs: InputSet) -> bool:
        try:
            answers = self.reference.call(self.workload, inputs).tensors
        except Exception:
            return False
        return all(is_finite(t) for t in answers if t.is_floating_point())
