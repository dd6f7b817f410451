"""Secret input sets of a workload that is too large to keep many: recipes, drawn when needed.

However many sets an evaluation uses, one is there at a time, and on a CPU perhaps another that it
is made of. Where the reference is separable, its
rows are shared out among the author's distribution and its variants, so that one call is checked on
all of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial

from kernel_smith.evaluation.judge.inputs.checks import (
    Block,
    Check,
    Comparer,
    Facts,
    LargeCheck,
    SmallCheck,
)
from kernel_smith.evaluation.judge.inputs.first_look import FirstLook
from kernel_smith.evaluation.judge.inputs.recipes import Recipe, medley
from kernel_smith.evaluation.judge.inputs.reference import (
    AUTHOR,
    InputSet,
    Reference,
    secret_seed,
)
from kernel_smith.evaluation.judge.inputs.row_mixing import are_mixable, mix_rows
from kernel_smith.evaluation.judge.inputs.rows import PartOfReference, Rows
from kernel_smith.evaluation.judge.inputs.variants import (
    is_beyond_precision,
    is_in_domain,
    offered_variants,
    try_variant,
)
from kernel_smith.evaluation.judge.inputs.varying import vary
from kernel_smith.evaluation.judge.values.accuracy import expect, is_finite, precision_rtol
from kernel_smith.records import Variant, Workload

_TRIED_ROWS = 8  # that the oracle is asked about while a task is prepared
_WHOLE_VARIANTS = 2  # where rows cannot be of different kinds
_WHOLE_SECONDS = {"cpu": 20.0, "cuda": 0.5}  # spent on trying them

_system_random = random.SystemRandom()


class LargePool:
    """The sets of one workload, none of which is kept."""

    is_large = True
    checks_at_once = 1

    def __init__(
        self, reference: Reference, workload: Workload, look: FirstLook, slice_bytes: int
    ) -> None:
        self.reference = reference
        self.workload = workload
        self.footprint = look.footprint
        self.rows = look.rows
        self.answer = look.answer
        self.layouts = [look.inputs]
        if Variant.STRIDED in reference.task.variants:
            self.layouts.append(vary(look.inputs, Variant.STRIDED, secret_seed()))
        self.left_out: list[str] = []
        self.extra_rtol = 0.0
        self._base_seed = look.seed
        self._mixes_rows = False
        self._facts: dict[str, Facts] = {}
        rows_at_once = 1
        if self.rows is None:
            self._learn_whole()
        else:
            rows_at_once = max(1, min(slice_bytes // look.row_bytes, self.rows.count))
            self._learn_by_rows(self.rows, min(rows_at_once, _TRIED_ROWS))
        self._facts[AUTHOR] = self._facts[AUTHOR].with_scales(look.scales)
        self._comparer = Comparer(
            reference, workload, self.extra_rtol, self._facts, self.rows, rows_at_once
        )
        self.checks: list[Check] = [self._check([AUTHOR]), *self._other_checks()]

    @property
    def author(self) -> Check:
        return self.checks[0]

    def _learn_by_rows(self, rows: Rows, most: int) -> None:
        """Ask the oracle about a few rows of each kind."""
        drawn = self.reference.draw_to_keep(self.workload, self._base_seed)
        part = PartOfReference(self.reference, rows, most, drawn)
        first = part.draw(self.workload, secret_seed())
        self._mixes_rows = self._can_mix(drawn, part, first)
        self.extra_rtol = precision_rtol(part, self.workload, first)
        self._facts[AUTHOR] = SmallCheck(part, self.workload, first, self.extra_rtol).facts
        for variant in offered_variants(self.reference, self.workload):
            if variant is Variant.STRIDED:
                continue
            found = try_variant(part, self.workload, variant, self.extra_rtol)
            if found is None or is_beyond_precision(part, self.workload, found):
                self.left_out.append(variant.value)
            else:
                self._facts[variant.value] = found.facts

    def _can_mix(self, drawn: InputSet, part: Reference, few: InputSet) -> bool:
        """Can new sets be made of one that is kept? Mixtures must stay in the reference's domain.
        A GPU draws faster than it mixes, and its memory is scarce."""
        if self.rows is None or self.reference.device != "cpu" or not are_mixable(drawn, self.rows):
            self.reference.forget_draw()
            return False
        try:
            answers = part.call(self.workload, mix_rows(few, secret_seed())).tensors
        except Exception:
            return False
        return all(is_finite(t) for t in answers if t.is_floating_point())

    def _draw(self, base_seed: int, seed: int) -> InputSet:
        """A set of the author's distribution; where sets are mixed, out of one of `base_seed`."""
        if not self._mixes_rows:
            return self.reference.draw(self.workload, seed)
        return mix_rows(self.reference.draw_to_keep(self.workload, base_seed), seed)

    def _learn_whole(self) -> None:
        """Ask the oracle about one whole set. What is in doubt on others, it is asked about then:
        a few variants that the reference is finite on, chosen by chance."""
        reference, workload = self.reference, self.workload
        inputs = reference.draw(workload, secret_seed())
        self.extra_rtol = precision_rtol(reference, workload, inputs)
        author = Facts.of(expect(reference, workload, inputs, self.extra_rtol))
        self._facts[AUTHOR] = author
        del inputs
        deadline = time.monotonic() + _WHOLE_SECONDS[reference.device]
        variants = [
            variant
            for variant in offered_variants(reference, workload)
            if variant is not Variant.STRIDED
        ]
        for variant in _system_random.sample(variants, len(variants)):
            if len(self._facts) > _WHOLE_VARIANTS or time.monotonic() > deadline:
                break
            if is_in_domain(reference, workload, variant, author.rtols):
                self._facts[variant.value] = author
            else:
                self.left_out.append(variant.value)

    def _other_checks(self) -> list[Check]:
        labels = [label for label in self._facts if label != AUTHOR]
        checks: list[Check] = []
        if self.rows is not None:
            checks.append(self._check(_system_random.sample([AUTHOR, *labels], len(labels) + 1)))
        else:
            checks += [self._check([label]) for label in labels]
        if Variant.STRIDED in self.reference.task.variants:
            checks.append(self._strided_check())
        return checks

    def _check(self, labels: list[str]) -> LargeCheck:
        blocks = self._blocks(labels)
        recipe = Recipe.of(blocks)
        draw = partial(self._draw, self._base_seed)
        free_integers = self.reference.free_integers(self.workload)
        make = partial(recipe.make, draw, self.rows, free_integers)
        return LargeCheck(self._comparer, make, blocks, labels[0] if len(labels) == 1 else "mixed")

    def _blocks(self, labels: list[str]) -> tuple[Block, ...]:
        if self.rows is not None:
            return medley(self.rows, labels)
        (label,) = labels
        return (Block(0, 1, label),)

    def _strided_check(self) -> LargeCheck:
        base_seed, seed = self._base_seed, secret_seed()

        def make() -> InputSet:
            return vary(self._draw(base_seed, seed), Variant.STRIDED, seed)

        return LargeCheck(self._comparer, make, self._blocks([AUTHOR]), Variant.STRIDED.value)

    @property
    def calls_to_check(self) -> int:
        """All check sets, and one of them a second time."""
        return len(self.checks) + 1

    @property
    def note(self) -> str:
        """Say what results were compared with, and what that left open."""
        left_open = ", ".join(sorted(self._comparer.left_open))
        if not left_open:
            return self._compared_with
        return (
            f"{self._compared_with}; {left_open}: left open, since PyTorch is as far off itself in "
            f"{self.reference.task.precision}"
        )

    @property
    def _compared_with(self) -> str:
        if self.rows is not None:
            rows = f"{self.rows.count} rows"
            return f"results compared with the reference's, and of {rows} secret ones with fp64"
        if self.reference.affords_oracle(self.workload):
            return "results compared with the reference's, whose error was measured with fp64"
        return (
            "results compared with the reference's in its own precision: fp64 would take "
            f"{self.footprint.oracle / (1 << 30):.0f} GiB"
        )

    @property
    def facts(self) -> Facts:
        """What the oracle says of the author's distribution."""
        return self._facts[AUTHOR]

    def hand_out_checks(self) -> list[Check]:
        """All check sets in random order, so that position says nothing. None is known already."""
        self.redraw_one()
        for check in self.checks:
            check.used = True
        return _system_random.sample(self.checks, len(self.checks))

    def reveal(self) -> None:
        """None is handed out twice in any case."""

    def hand_out_hidden_checks(self) -> list[Check]:
        """Variants for the midst of timing."""
        labels = [label for label in self._facts if label != AUTHOR]
        if not labels:
            return []
        if self.rows is None:
            return [self._check([_system_random.choice(labels)])]
        return [self._check(_system_random.sample([AUTHOR, *labels], len(labels) + 1))]

    def timing_sets(self) -> Iterator[InputSet]:
        """An endless supply, each set drawn when it is asked for."""
        while True:
            yield self._draw(self._base_seed, secret_seed())

    @property
    def can_replace_inputs(self) -> bool:
        """There is nothing to replace where a batch is one call."""
        return True

    def in_place_of(self, bound: InputSet, drawn: InputSet) -> InputSet:
        return drawn.with_numbers_of(bound)

    def check(self, inputs: InputSet) -> Check:
        """A check of these very inputs."""
        blocks = self._blocks([AUTHOR])
        return LargeCheck(self._comparer, lambda: inputs, blocks, inputs.label)

    def redraw_one(self) -> bool:
        """Replace used recipes by fresh ones; False when none is left to replace."""
        if not any(check.used for check in self.checks):
            return False
        self._base_seed = secret_seed()
        self.checks = [self._check([AUTHOR]), *self._other_checks()]
        return True
