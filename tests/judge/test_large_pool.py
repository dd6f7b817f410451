"""Workloads too large to keep any set of: drawn by recipe, compared in full, rows asked about."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.inputs import checks as checks_module
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.checks import Block, Comparer, LargeCheck
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.large_pool import LargePool
from kernel_smith.evaluation.judge.inputs.pool import InputPool, Pool, make_pool
from kernel_smith.evaluation.judge.inputs.recipes import medley
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
)
from kernel_smith.evaluation.judge.inputs.rows import Rows
from kernel_smith.evaluation.judge.values.accuracy import scale_of
from kernel_smith.evaluation.judge.values.comparison import Comparison
from kernel_smith.evaluation.judge.values.mantissa import round_mantissa, truncate_mantissa
from kernel_smith.evaluation.judge.values.survey import histogram
from kernel_smith.records import Reason, Task, Variant, Workload

WriteTask = Callable[..., Task]
MakePool = Callable[..., LargePool]

# Every call is large, and the oracle is asked about a few rows at a time.
BUDGET = Budget(kept=0, at_once=4 << 10, free=1 << 30)
# Not even the whole of one call in double precision would fit.
SCARCE = BUDGET._replace(free=0)

ROWS, COLUMNS = 60, 40
VARIANTS = ["large", "small", "spikes", "sorted", "ties"]
SETTINGS = f"{{'variants': {VARIANTS}}}"


def source(
    forward: str = "return x * 2 + 1",
    inputs: str = f"[torch.randn({ROWS}, {COLUMNS})]",
    arguments: str = "x",
    settings: str = SETTINGS,
    layers: str = "pass",
) -> str:
    return f"""
import torch

TASK = {settings}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return {inputs}
"""


ELEMENTWISE = source()
SOFTMAX = source("return torch.softmax(x, -1)")
CENTRED = source("return x - x.mean(0)")
MATMUL = source(
    "return self.f(x)",
    "[torch.randn(48, 64)]",
    layers="self.f = torch.nn.Linear(64, 24)",
    settings=f"{{'precision': 'PRECISION', 'variants': {VARIANTS}}}",
)
WHOLE_MATMUL = MATMUL.replace("self.f(x)", "self.f(x) - self.f(x).mean(0)")


def pool_of(task: Task, budget: Budget) -> Pool:
    reference, (workload,) = Reference(task), task.workloads
    return make_pool(reference, workload, 2, budget, look_at(reference, workload, budget))


@pytest.fixture
def make(write_task: WriteTask) -> MakePool:
    def made(text: str = ELEMENTWISE, budget: Budget = BUDGET, name: str = "task") -> LargePool:
        pool = pool_of(write_task(text, name=name), budget)
        assert isinstance(pool, LargePool)
        return pool

    return made


def content(inputs: InputSet) -> bytes:
    return b"|".join(t.contiguous().numpy().tobytes() for t in inputs.tensors)


def check_named(pool: LargePool, label: str) -> LargeCheck:
    (check,) = [c for c in pool.hand_out_checks() if c.label == label]
    assert isinstance(check, LargeCheck)
    return check


def mixed(pool: LargePool) -> LargeCheck:
    return check_named(pool, "mixed")


def right(pool: LargePool, inputs: InputSet) -> list[torch.Tensor]:
    """What a perfect kernel would answer: the exact result, rounded once."""
    exact = pool.reference.oracle(pool.workload, inputs).tensors
    dtypes = [t.dtype for t in pool.answer.tensors]
    return [t.to(dtype) for t, dtype in zip(exact, dtypes, strict=True)]


def answer(pool: LargePool, inputs: InputSet) -> list[torch.Tensor]:
    """What the reference says, for the taking."""
    return [t.clone() for t in pool.reference.call(pool.workload, inputs).tensors]


def all_checks(pool: LargePool) -> Iterator[tuple[LargeCheck, InputSet]]:
    for check in pool.hand_out_checks():
        assert isinstance(check, LargeCheck)
        yield check, check.draw()


def kind_of(check: LargeCheck, row: int) -> str:
    (label,) = [b.label for b in check._blocks if b.start <= row < b.stop]
    return label


# Recipes.


def test_small_workloads_are_still_kept(write_task: WriteTask) -> None:
    task = write_task(ELEMENTWISE)
    call = 2 * 4 * ROWS * COLUMNS
    just_enough = BUDGET._replace(kept=8 * call)
    assert isinstance(pool_of(task, just_enough), InputPool)
    too_little = BUDGET._replace(kept=8 * call - 8)
    assert isinstance(pool_of(task, too_little), LargePool)


def test_parameters_count_as_part_of_a_call(write_task: WriteTask) -> None:
    text = source(
        "return self.f(x)", "[torch.randn(2, 64)]", layers="self.f = torch.nn.Linear(64, 64)"
    )
    task = write_task(text)
    without = BUDGET._replace(kept=8 * 2 * 4 * 2 * 64)
    assert isinstance(pool_of(task, without), LargePool)


@pytest.mark.parametrize("text", [ELEMENTWISE, CENTRED], ids=["rows", "whole"])
def test_a_recipe_draws_the_same_bits_each_time(make: MakePool, text: str) -> None:
    pool = make(
        text.replace(f"TASK = {SETTINGS}", f"TASK = {{'variants': {[*VARIANTS, 'strided']}}}")
    )
    for check, inputs in all_checks(pool):
        again = check.draw()
        assert content(again) == content(inputs)
        assert [t.stride() for t in again.tensors] == [t.stride() for t in inputs.tensors]


def test_no_two_recipes_draw_the_same(make: MakePool, write_task: WriteTask) -> None:
    pool, other = make(), make()
    sets = [content(inputs) for p in (pool, other) for _, inputs in all_checks(p)]
    sets += [content(c.draw()) for _ in range(3) for c in pool.hand_out_hidden_checks()]
    sets += [content(inputs) for p in (pool, other) for inputs in islice(p.timing_sets(), 20)]
    assert len(set(sets)) == len(sets)


def test_no_row_of_the_checks_comes_again_when_timed(make: MakePool) -> None:
    pool = make()
    rows = [tuple(row) for _, inputs in all_checks(pool) for row in inputs.tensors[0].tolist()]
    rows += [tuple(r) for s in islice(pool.timing_sets(), 10) for r in s.tensors[0].tolist()]
    assert len(set(rows)) == len(rows)


def test_the_author_comes_alone_and_among_all_variants(make: MakePool) -> None:
    pool = make()
    assert sorted(check.label for check in pool.hand_out_checks()) == ["author", "mixed"]
    assert pool.author.label == "author"
    assert pool.left_out == []
    assert {b.label for b in mixed(pool)._blocks} == {"author", *VARIANTS}
    assert pool.calls_to_check == 3


def test_every_row_of_a_mixed_set_is_of_its_kind(make: MakePool) -> None:
    pool = make()
    check = mixed(pool)
    x = check.draw().tensors[0]
    for block in check._blocks:
        rows = x[block.start : block.stop]
        sizes = rows.abs()
        ascending = bool((rows.diff(dim=-1) >= 0).all())
        assert ascending == (block.label == "sorted")
        assert (sizes.median() > 100) == (block.label == "large")
        assert (sizes.median() < 0.01) == (block.label == "small")
        assert (0 < (sizes > 20).sum() <= 8) == (block.label == "spikes")
        assert (rows.unique().numel() <= 9) == (block.label == "ties")


def test_mixed_sets_come_in_another_order_each_time(make: MakePool) -> None:
    pool = make()
    orders = set()
    for _ in range(6):
        orders.add(tuple(block.label for block in mixed(pool)._blocks))
        assert pool.redraw_one()
    assert len(orders) > 1
    hidden = [c for _ in range(6) for c in pool.hand_out_hidden_checks()]
    assert len({tuple(c._blocks) for c in hidden if isinstance(c, LargeCheck)}) > 1


@given(rows=st.integers(2, 500), kinds=st.integers(1, 7))
def test_every_row_belongs_to_one_block(rows: int, kinds: int) -> None:
    labels = ["author", *VARIANTS, "more"][:kinds]
    blocks = medley(Rows(rows, (True,)), labels)
    assert [row for b in blocks for row in range(b.start, b.stop)] == list(range(rows))
    assert all(b.stop > b.start for b in blocks)
    assert [b.label for b in blocks] == labels[:rows]


def test_inputs_that_belong_to_all_rows_are_not_varied(make: MakePool) -> None:
    pool = make(source("return x @ y", "[torch.randn(60, 40), torch.randn(40, 9)]", "x, y"))
    assert pool.rows is not None
    assert pool.rows.split == (True, False)
    y = mixed(pool).draw().tensors[1]
    assert 0.8 < float(y.std()) < 1.2


def test_integer_inputs_are_not_varied(make: MakePool) -> None:
    pool = make(
        source("return x * i", "[torch.randn(60, 9), torch.randint(1, 9, (60, 9))]", "x, i")
    )
    i = mixed(pool).draw().tensors[1]
    assert i.min() >= 1
    assert i.max() <= 8


def test_variants_outside_the_domain_are_left_out(make: MakePool) -> None:
    pool = make(source("return torch.exp(x)", f"[torch.rand({ROWS}, {COLUMNS}) + 1]"))
    assert pool.left_out == ["large", "spikes"]
    assert {b.label for b in mixed(pool)._blocks} == {"author", "small", "sorted", "ties"}


def test_a_set_that_is_not_contiguous_has_rows_of_every_kind(make: MakePool) -> None:
    pool = make(source(inputs=f"[torch.randn({COLUMNS}, {ROWS}).t()]"))
    inputs = mixed(pool).draw()
    assert inputs.tensors[0].stride() == (1, ROWS)
    assert mixed(pool).compare(right(pool, inputs), inputs).reason is None


def test_a_set_whose_elements_share_memory_has_rows_of_every_kind(make: MakePool) -> None:
    pool = make(
        source("return x + y", "[torch.randn(60, 9), torch.randn(60, 1).expand(60, 9)]", "x, y")
    )
    for check, inputs in all_checks(pool):
        assert check.compare(right(pool, inputs), inputs).reason is None


@pytest.mark.parametrize(
    "kept",
    [
        "KEPT",
        "KEPT.t().t()",
        "torch.from_numpy(ARRAY)",
    ],
)
def test_what_the_author_keeps_is_not_changed(make: MakePool, kept: str) -> None:
    text = source("return x + y", f"[torch.randn(60, 9), {kept}]", "x, y")
    text += "\nKEPT = torch.randn(60, 9)\nARRAY = KEPT.numpy().copy()\n"
    pool = make(text)
    check = mixed(pool)
    assert content(check.draw()) == content(check.draw())


def test_strided_inputs_are_a_set_of_their_own(make: MakePool) -> None:
    pool = make(source(settings='{"variants": ["strided", "large"]}'))
    labels = sorted(check.label for check in pool.hand_out_checks())
    assert labels == ["author", "mixed", "strided"]
    check = check_named(pool, "strided")
    inputs = check.draw()
    assert inputs.tensors[0].stride() == (2 * COLUMNS, 2)
    assert [t.tensors[0].stride() for t in pool.layouts] == [(COLUMNS, 1), (2 * COLUMNS, 2)]
    assert not check.fits_in_place_of(pool.layouts[0])
    assert check.compare(right(pool, inputs), inputs).reason is None
    wrong = right(pool, inputs)
    wrong[0][7, 3] += 1
    comparison = check.compare(wrong, inputs)
    assert comparison.worst is not None
    assert comparison.worst.index == (7, 3)


def test_used_recipes_are_replaced_at_idle_times(make: MakePool) -> None:
    pool = make()
    assert not pool.redraw_one()
    before = {content(inputs) for _, inputs in all_checks(pool)}
    assert pool.redraw_one()
    assert not pool.redraw_one()
    after = {content(inputs) for _, inputs in all_checks(pool)}
    assert len(after) == len(before)
    assert not before & after


def test_replaced_recipes_keep_their_kinds_and_get_right_answers(make: MakePool) -> None:
    pool = make(source(settings='{"variants": ["strided", "large", "ties"]}'))
    labels = sorted(check.label for check in pool.hand_out_checks())
    assert pool.redraw_one()
    assert sorted(check.label for check in pool.hand_out_checks()) == labels
    for check, inputs in all_checks(pool):
        assert check.compare(right(pool, inputs), inputs).reason is None


def test_no_recipe_serves_two_candidates_however_soon_the_next_one_comes(make: MakePool) -> None:
    pool = make(source(settings='{"variants": ["strided", "large", "ties"]}'))
    first, second = ({content(inputs) for _, inputs in all_checks(pool)} for _ in range(2))
    assert len(first) == len(second)
    assert not first & second


def test_layouts_do_not_become_more_when_recipes_are_replaced(make: MakePool) -> None:
    pool = make(source(settings='{"variants": ["strided"]}'))
    count = len(pool.layouts)
    for _ in range(3):
        pool.hand_out_checks()
        pool.redraw_one()
    assert len(pool.layouts) == count


# What is right, and what is not.

RIGHT = {
    "elementwise": ELEMENTWISE,
    "softmax": SOFTMAX,
    "matmul": MATMUL.replace("PRECISION", "strict"),
    "whole": CENTRED,
    "whole_matmul": WHOLE_MATMUL.replace("PRECISION", "strict"),
    "integers": source("return x.argmax(-1)"),
    "several": source("return x * 2, x.sum(-1), x > 0"),
    "dictionary": source("return {'sum': x.sum(-1), 'all': [x * 2]}"),
    "half": source("return torch.tanh(x)", f"[torch.randn({ROWS}, {COLUMNS}).half()]"),
    "bfloat16": source("return x * 3", f"[torch.randn({ROWS}, {COLUMNS}).bfloat16()]"),
    "double": source("return x * 3", f"[torch.randn({ROWS}, {COLUMNS}).double()]"),
    "complex": source("return torch.fft.fft(x)"),
    "one_dimension": source("return x.abs()", "[torch.randn(999)]"),
    "conv": source(
        "return self.f(x)",
        "[torch.randn(7, 3, 9, 9)]",
        layers="self.f = torch.nn.Conv2d(3, 4, 3)",
    ),
    "an_own_tolerance": source(settings='{"tolerance": {"rtol": 1e-3, "atol": 1e-3}}'),
    "no_oracle": source("assert x.dtype == torch.float32; return torch.softmax(x, -1)"),
    "whole_without_oracle": source("assert x.dtype == torch.float32; return x - x.mean(0)"),
    "scalar": source("return (x * x).sum()"),
    "float8": source("return x.to(torch.float8_e4m3fn)", settings='{"variants": ["small"]}'),
    "empty_output": source("return x[:, :0], x * 2"),
    "nested_inputs": source(
        "return x[0] * x[1][0] + s", "[(torch.randn(60, 9), [2.0]), None, 0.5]", "x, n, s"
    ),
    "kept_by_the_author": source("return x + y", "[torch.randn(60, 9), KEPT]", "x, y")
    + "\nKEPT = torch.randn(60, 9)\n",
    "same_tensor_twice": source("return x * y", "[torch.randn(60, 9)] * 2", "x, y"),
    "fewer_rows_than_kinds": source(inputs="[torch.randn(2, 40)]"),
}


@pytest.mark.parametrize("budget", [BUDGET, SCARCE], ids=["enough", "scarce"])
@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_right_answer_passes(make: MakePool, text: str, budget: Budget) -> None:
    pool = make(text, budget)
    hidden = pool.hand_out_hidden_checks()
    for check in [*pool.hand_out_checks(), *hidden]:
        inputs = check.draw()
        answers = [answer(pool, inputs)]
        if "assert" not in text:
            answers.append(right(pool, inputs))
        for got in answers:
            comparison = check.compare(got, inputs)
            assert comparison.reason is None, comparison
            assert comparison.worst is None
        assert check.agrees(answers[0], inputs)
    for inputs in islice(pool.timing_sets(), 2):
        got = answer(pool, inputs)
        assert pool.check(inputs).compare_timed(got, answer(pool, inputs), inputs).reason is None
        assert pool.check(inputs).compare(got, inputs).reason is None


def off_by(want: torch.Tensor, share: float, rtol: float = 4e-5) -> torch.Tensor:
    """Off by a share of what single precision may be off by, in all elements."""
    return want + share * rtol * (want.abs() + scale_of(want))


@pytest.mark.parametrize("text", [ELEMENTWISE, CENTRED], ids=["rows", "whole"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    row=st.integers(0, ROWS - 1),
    column=st.integers(0, COLUMNS - 1),
    excess=st.floats(3, 1e6),
    sign=st.sampled_from([1, -1]),
    author=st.booleans(),
)
def test_one_wrong_element_anywhere_is_found_and_named(
    make: MakePool, text: str, row: int, column: int, excess: float, sign: int, author: bool
) -> None:
    pool = make(text)
    others = [c for c in pool.hand_out_checks() if c.label != "author"]
    check = pool.author if author or not others else others[0]
    assert isinstance(check, LargeCheck)
    inputs = check.draw()
    got = right(pool, inputs)
    block = next(b for b in check._blocks if b.start <= row < b.stop or pool.rows is None)
    rows = got[0][block.start : block.stop] if pool.rows is not None else got[0]
    got[0][row, column] += sign * excess * 4e-5 * (got[0][row, column].abs() + scale_of(rows))
    wrong = float(got[0][row, column])
    comparison = check.compare(got, inputs)
    assert comparison.reason in (Reason.WRONG_VALUES, Reason.PRECISION)
    assert comparison.worst is not None
    assert comparison.worst.index == (row, column)
    assert comparison.worst.inputs == block.label
    assert comparison.worst.got == wrong
    assert comparison.worst.output == 0
    assert comparison.error is not None
    assert comparison.error > 4e-5
    assert check is not pool.author or not check.agrees(got, inputs)
    assert sum(bin.elements for bin in histogram(comparison.surveys)) > 0


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(row=st.integers(0, ROWS - 1), column=st.integers(0, COLUMNS - 1), excess=st.floats(3, 1e4))
def test_one_wrong_element_of_a_timed_call_is_found(
    make: MakePool, row: int, column: int, excess: float
) -> None:
    pool = make()
    inputs = next(pool.timing_sets())
    got, want = answer(pool, inputs), answer(pool, inputs)
    got[0][row, column] += excess * 4e-5 * (got[0][row, column].abs() + scale_of(got[0]))
    comparison = pool.check(inputs).compare_timed(got, want, inputs)
    assert comparison.reason is not None
    assert comparison.worst is not None
    assert comparison.worst.index == (row, column)


@pytest.mark.parametrize("text", [ELEMENTWISE, CENTRED], ids=["rows", "whole"])
@pytest.mark.parametrize("share", [-0.9, 0.5, 0.9])
def test_what_is_off_by_less_than_allowed_passes(make: MakePool, text: str, share: float) -> None:
    pool = make(text)
    for check, inputs in all_checks(pool):
        got = right(pool, inputs)
        for block in check._blocks:
            rows = slice(block.start, block.stop) if pool.rows is not None else slice(None)
            got[0][rows] = off_by(got[0][rows], share)
        assert check.compare(got, inputs).reason is None


@pytest.mark.parametrize("budget", [BUDGET, SCARCE], ids=["enough", "scarce"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("text", [ELEMENTWISE, CENTRED], ids=["rows", "whole"])
def test_what_is_not_finite_is_called_so(
    make: MakePool, text: str, value: float, budget: Budget
) -> None:
    pool = make(text, budget)
    for check, inputs in all_checks(pool):
        got = answer(pool, inputs)
        got[0][41, 2] = value
        comparison = check.compare(got, inputs)
        assert comparison.reason is Reason.NON_FINITE
        assert comparison.worst is not None
        assert comparison.worst.index == (41, 2)
        assert not check.agrees(got, inputs)


@pytest.mark.parametrize("text", [ELEMENTWISE, CENTRED], ids=["rows", "whole"])
@pytest.mark.parametrize("fill", [0.0, 1.0, float("nan")])
def test_an_answer_to_nothing_fails(make: MakePool, text: str, fill: float) -> None:
    pool = make(text)
    for check, inputs in all_checks(pool):
        got = [torch.full_like(t, fill) for t in answer(pool, inputs)]
        assert check.compare(got, inputs).reason is not None
        assert not check.agrees(got, inputs)


@pytest.mark.parametrize("part", [(slice(-1, None),), (slice(None), slice(-3, None))])
@pytest.mark.parametrize("text", [SOFTMAX, CENTRED], ids=["rows", "whole"])
def test_the_last_row_or_columns_count(make: MakePool, text: str, part: tuple[slice, ...]) -> None:
    pool = make(text)
    for check, inputs in all_checks(pool):
        got = right(pool, inputs)
        got[0][part] = 0
        comparison = check.compare(got, inputs)
        assert comparison.reason is Reason.WRONG_VALUES
        assert comparison.worst is not None
        row, column = comparison.worst.index
        assert row == ROWS - 1 or column >= COLUMNS - 3


def test_what_is_right_on_the_secret_rows_alone_fails(
    make: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suppose that somebody knew them."""

    def known(comparer: Comparer, block: Block) -> list[int]:
        return list(range(block.start, min(block.start + 3, block.stop)))

    monkeypatch.setattr(Comparer, "_secret_rows", known)
    pool = make(SOFTMAX)
    for check, inputs in all_checks(pool):
        got = right(pool, inputs)
        for block in check._blocks:
            got[0][block.start + 3 : block.stop] *= 1 + 1e-3
        comparison = check.compare(got, inputs)
        assert comparison.reason in (Reason.PRECISION, Reason.WRONG_VALUES)
        assert comparison.worst is not None
        assert comparison.worst.index[0] >= 3


def test_secret_rows_lie_in_their_block_and_everywhere_in_it(make: MakePool) -> None:
    pool = make()
    blocks = mixed(pool)._blocks
    for block in blocks:
        asked = [row for _ in range(200) for row in pool._comparer._secret_rows(block)]
        assert set(asked) == set(range(block.start, block.stop))


def test_an_error_that_is_hidden_by_the_size_of_other_rows_counts(make: MakePool) -> None:
    """Rows of a small kind are held against their own scale, and not against their neighbours'."""
    pool = make(source("return x * 2"))
    check = mixed(pool)
    inputs = check.draw()
    got = right(pool, inputs)
    (small,) = [b for b in check._blocks if b.label == "small"]
    got[0][small.start : small.stop] = 0
    comparison = check.compare(got, inputs)
    assert comparison.reason is Reason.WRONG_VALUES
    assert comparison.worst is not None
    assert comparison.worst.inputs == "small"


@pytest.mark.parametrize("budget", [BUDGET, SCARCE], ids=["enough", "scarce"])
@pytest.mark.parametrize(
    "text",
    [
        source("return x % 7", "[torch.randint(10_000, (60, 40))]"),
        source("return x.cumsum(0)", "[torch.randint(10_000, (60, 40))]"),
        source("return x > 0"),
        # Where values tie, more than one index is right.
        source("return x * 2, x.argmax(-1)", settings='{"variants": ["large", "small"]}'),
    ],
    ids=["rows", "whole", "booleans", "beside_others"],
)
def test_integers_must_be_equal(make: MakePool, text: str, budget: Budget) -> None:
    pool = make(text, budget)
    for check, inputs in all_checks(pool):
        got = answer(pool, inputs)
        element = got[-1].view(-1)[37:38]
        element.copy_(~element if element.dtype is torch.bool else element + 1)
        comparison = check.compare(got, inputs)
        assert comparison.reason is Reason.WRONG_VALUES
        assert comparison.worst is not None
        assert comparison.worst.output == len(got) - 1
        assert not check.agrees(got, inputs)


def test_a_choice_between_equals_may_fall_on_either_side(make: MakePool) -> None:
    """Rows of which two values are the largest, but for a rounding error."""
    text = source(
        "return (x * 3).argmax(-1)",
        "[torch.cat([torch.rand(60, 8), 2 + torch.rand(60, 1).expand(60, 2) * "
        "torch.tensor([1, 1 + 1e-7])], 1)]",
        settings='{"variants": []}',
    )
    pool = make(text)
    inputs = pool.author.draw()
    got = answer(pool, inputs)
    got[0][:5] = 17 - got[0][:5]
    assert pool.author.compare(got, inputs).reason is None
    got[0][50] = 3
    comparison = pool.author.compare(got, inputs)
    assert comparison.worst is not None
    assert comparison.worst.index == (50,)


# Precision.

Rounding = Callable[[torch.Tensor], torch.Tensor]


def bf16(tensor: torch.Tensor) -> torch.Tensor:
    return round_mantissa(tensor, 7)


def tf32(tensor: torch.Tensor) -> torch.Tensor:
    return truncate_mantissa(tensor, 10)


@pytest.mark.parametrize("text", [MATMUL, WHOLE_MATMUL], ids=["rows", "whole"])
@pytest.mark.parametrize(
    ("allowed", "used", "reason"),
    [
        ("strict", tf32, Reason.PRECISION),
        ("strict", bf16, Reason.PRECISION),
        ("tf32", tf32, None),
        ("bf16", tf32, None),
        ("bf16", bf16, None),
    ],
)
def test_precision_is_as_the_task_allows(
    make: MakePool, text: str, allowed: str, used: Rounding, reason: Reason | None
) -> None:
    pool = make(text.replace("PRECISION", allowed))
    for check, inputs in all_checks(pool):
        coarse = pool.reference.coarse(pool.workload, inputs, used, wide=True).tensors
        comparison = check.compare([t.float() for t in coarse], inputs)
        assert comparison.reason is reason, comparison.worst


CAPPED = source(
    "y = 30 * torch.tanh(x @ self.w / 30); return y - y.mean(0)",
    "[torch.randn(5, 60)]",
    layers="self.w = torch.nn.Parameter(3 * torch.randn(60, 1003))",
    settings='{"precision": "PRECISION", "variants": ["large"]}',
)


# Of large values a tanh keeps the sign alone, and TF32 does not know the sign of each.
def test_a_variant_that_the_allowed_precision_cannot_serve_is_left_out(make: MakePool) -> None:
    pool = make(CAPPED.replace("PRECISION", "tf32"))
    assert pool.rows is None
    for check, inputs in all_checks(pool):
        coarse = pool.reference.coarse(pool.workload, inputs, tf32, wide=True).tensors
        assert check.compare([t.float() for t in coarse], inputs).reason is None, check.label


@pytest.mark.parametrize("text", [MATMUL, WHOLE_MATMUL], ids=["rows", "whole"])
def test_variants_on_which_pytorch_strays_are_left_open(
    make: MakePool, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    pool = make(text.replace("PRECISION", "tf32"))

    def strays(inputs: InputSet) -> list[torch.Tensor]:
        return [t.flip(0) for t in answer(pool, inputs)]

    checks = [(check, inputs) for check, inputs in all_checks(pool) if check.label != "strided"]
    assert pool.note and "left open" not in pool.note
    for check, inputs in checks:
        assert check.compare(strays(inputs), inputs).reason is not None
    library = Result("tensor", [])
    monkeypatch.setattr(pool.reference, "library", lambda workload, inputs: library)
    passed = False
    for check, inputs in checks:
        library.tensors[:] = strays(inputs)
        only = check.label != "author" and "author" not in {b.label for b in check._blocks}
        assert (check.compare(strays(inputs), inputs).reason is None) == only, check.label
        spoilt = [t.clone().fill_(float("nan")) for t in answer(pool, inputs)]
        assert check.compare(spoilt, inputs).reason is Reason.NON_FINITE
        passed |= only
    # Among rows of several kinds the author's may be refused before another is looked at.
    assert "left open" in pool.note or not passed


@pytest.mark.parametrize(("used", "reason"), [(tf32, Reason.PRECISION), (None, None)])
def test_precision_counts_in_timed_calls(
    make: MakePool, used: Rounding | None, reason: Reason | None
) -> None:
    pool = make(MATMUL.replace("PRECISION", "strict"))
    inputs = next(pool.timing_sets())
    got = right(pool, inputs)
    if used is not None:
        got = [
            t.float() for t in pool.reference.coarse(pool.workload, inputs, used, wide=True).tensors
        ]
    assert pool.check(inputs).compare_timed(got, answer(pool, inputs), inputs).reason is reason


INEXACT = source("return (x + 1e4) - 1e4", settings='{"variants": []}')


@pytest.mark.parametrize(
    "budget",
    [
        BUDGET,
        SCARCE,  # the whole does not fit in double precision, but rows do
    ],
    ids=["enough", "scarce"],
)
def test_rows_are_held_against_the_oracle_and_the_references_own_error(
    make: MakePool, budget: Budget
) -> None:
    """On the side of the exact result that the reference's rounding errors are not on."""
    pool = make(INEXACT, budget)
    assert pool.rows is not None
    assert pool.facts.reference_error > 1e-4
    for _ in range(5):
        inputs = pool.author.draw()
        exact, rounded = right(pool, inputs)[0], answer(pool, inputs)[0]
        got = exact + (exact - rounded)
        assert pool.author.compare([got], inputs).reason is None


@pytest.mark.parametrize("budget", [BUDGET, SCARCE], ids=["enough", "scarce"])
def test_the_oracle_is_asked_about_some_rows_of_every_block(
    make: MakePool, monkeypatch: pytest.MonkeyPatch, budget: Budget
) -> None:
    pool = make(SOFTMAX, budget)
    check = mixed(pool)
    inputs = check.draw()
    asked: list[tuple[str, int]] = []
    oracle = pool.reference.oracle

    def note(workload: object, part: InputSet) -> object:
        asked.append((part.label, len(part.tensors[0])))
        return oracle(pool.workload, part)

    got = right(pool, inputs)
    monkeypatch.setattr(pool.reference, "oracle", note)
    assert check.compare(got, inputs).reason is None
    assert {label for label, _ in asked} == {"author", *VARIANTS}
    assert max(size for _, size in asked) <= pool._comparer.rows_at_once < ROWS


def test_a_timed_call_that_agrees_asks_nobody(
    make: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make(SOFTMAX)
    inputs = next(pool.timing_sets())
    got = answer(pool, inputs)

    def refuse(*arguments: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(checks_module, "expect", refuse)
    assert pool.check(inputs).compare_timed(got, answer(pool, inputs), inputs).reason is None


PRODUCT = source("return x @ y", "[torch.randn(48, 512), torch.randn(512, 64)]", "x, y")


@pytest.mark.parametrize("timed", [True, False], ids=["timed", "asked_again"])
def test_hidden_checks_in_the_midst_of_timed_calls_are_compared_by_kind(
    make: MakePool, timed: bool
) -> None:
    pool = make(PRODUCT)
    for _ in range(3):
        (check,) = pool.hand_out_hidden_checks()
        inputs = check.draw()
        got, want = right(pool, inputs), answer(pool, inputs)
        assert check.compare(got, inputs).reason is None
        if timed:
            comparison = pool.check(inputs).compare_timed(got, want, inputs)
        else:
            comparison = pool.check(inputs).compare(got, inputs)
        assert comparison.reason is None, comparison.worst


def test_a_hidden_check_finds_what_fails_on_one_kind_alone(make: MakePool) -> None:
    pool = make(source("return torch.softmax(x, -1)"))
    (check,) = pool.hand_out_hidden_checks()
    assert isinstance(check, LargeCheck)
    inputs = check.draw()
    x = inputs.tensors[0]
    careless = x.exp() / x.exp().sum(-1, keepdim=True)
    comparison = check.compare([careless], inputs)
    assert comparison.reason is Reason.NON_FINITE
    assert comparison.worst is not None
    assert comparison.worst.inputs in ("large", "spikes")
    assert comparison.worst.inputs == kind_of(check, comparison.worst.index[0])


LAYER_NORM = source("return torch.nn.functional.layer_norm(x, x.shape[-1:])", settings="{}")


def test_kinds_that_shift_and_use_the_range_are_survived_by_what_is_right(make: MakePool) -> None:
    for text in (LAYER_NORM, source("return torch.softmax(x, -1)", settings="{}")):
        pool = make(text)
        check = mixed(pool)
        assert {"huge", "tiny", "shifted", "uneven"} <= {block.label for block in check._blocks}
        for check, inputs in all_checks(pool):
            assert check.compare(right(pool, inputs), inputs).reason is None


def test_a_variance_in_one_pass_is_found_wrong(make: MakePool) -> None:
    pool = make(LAYER_NORM)
    check = mixed(pool)
    inputs = check.draw()
    x = inputs.tensors[0]
    mean, squares = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    careless = (x - mean) / (squares - mean * mean).clamp_min(0).add(1e-5).sqrt()
    comparison = check.compare([careless], inputs)
    assert comparison.worst is not None
    assert comparison.worst.inputs in ("shifted", "uneven")


# Without rows, without an oracle.


def test_where_rows_depend_on_each_other_some_variants_are_sets_of_their_own(
    make: MakePool,
) -> None:
    seen: set[str] = set()
    for _ in range(6):
        pool = make(CENTRED)
        assert pool.rows is None
        labels = [check.label for check in pool.hand_out_checks()]
        assert labels.count("author") == 1
        assert 1 <= len(labels) - 1 <= 2
        seen |= set(labels)
        for check, inputs in all_checks(pool):
            assert check.label == "author" or inputs.label == check.label
        (hidden,) = pool.hand_out_hidden_checks()
        assert hidden.label in VARIANTS
    assert len(seen) > 3, "which ones is left to chance"


def test_a_whole_that_does_not_fit_in_double_precision_is_compared_with_the_reference(
    make: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    oracle = Reference.oracle

    def note(reference: Reference, workload: Workload, inputs: InputSet) -> Result:
        asked.append(len(inputs.tensors[0]))
        return oracle(reference, workload, inputs)

    monkeypatch.setattr(Reference, "oracle", note)
    pool = make(CENTRED, SCARCE)
    assert "fp64 would take" in pool.note
    for check, inputs in all_checks(pool):
        got = answer(pool, inputs)
        assert check.compare(got, inputs).reason is None
        got[0][5, 5] += scale_of(got[0])
        comparison = check.compare(got, inputs)
        assert comparison.reason is Reason.WRONG_VALUES
        assert comparison.worst is not None
        assert comparison.worst.index == (5, 5)
    # Nor is it asked for the benefit of the doubt.
    assert ROWS not in asked, "there is no memory for it"


@pytest.mark.parametrize(
    "forward",
    ["return torch.softmax(x, -1)", "return x - x.mean(0)"],
    ids=["rows", "whole"],
)
def test_a_reference_that_insists_on_its_dtype(make: MakePool, forward: str) -> None:
    pool = make(source(f"assert x.dtype == torch.float32; {forward}"))
    assert pool.facts.reference_error == 0
    assert pool.facts.rtols == [4e-5]
    for check, inputs in all_checks(pool):
        got = answer(pool, inputs)
        assert check.compare(got, inputs).reason is None
        got[0][50, 5] += 1e-3 * scale_of(got[0])
        comparison = check.compare(got, inputs)
        assert comparison.reason is Reason.WRONG_VALUES
        assert comparison.worst is not None
        assert comparison.worst.index == (50, 5)


def test_notes_say_what_results_were_compared_with(make: MakePool) -> None:
    assert f"{ROWS} rows" in make().note
    assert "measured with fp64" in make(CENTRED).note
    assert "its own precision" in make(CENTRED, SCARCE).note


@pytest.mark.parametrize("variant", Variant)
def test_every_variant_can_be_asked_for_alone(make: MakePool, variant: Variant) -> None:
    for text in (ELEMENTWISE, CENTRED):
        pool = make(
            text.replace(f"TASK = {SETTINGS}", f"TASK = {{'variants': ['{variant.value}']}}")
        )
        for check, inputs in all_checks(pool):
            assert check.compare(right(pool, inputs), inputs).reason is None


# Memory.


def live_bytes() -> int:
    """What all tensors that Python knows of hold."""
    gc.collect()
    tensors = (o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter))
    found = [t for t in tensors if not t.is_meta]
    held = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in found}
    return sum(held.values())


@pytest.mark.slow
@pytest.mark.parametrize(("text", "kept"), [(ELEMENTWISE, 1), (CENTRED, 0)], ids=["rows", "whole"])
def test_nothing_is_kept_of_a_set(make: MakePool, text: str, kept: int) -> None:
    """But for one that others are mixed of, where they are, while a candidate is judged."""
    text = text.replace(f"TASK = {SETTINGS}", f"TASK = {{'variants': {[*VARIANTS, 'strided']}}}")
    size = 4 * ROWS * COLUMNS
    before = live_bytes()
    pool = make(text)
    pool.hand_out_hidden_checks()
    assert live_bytes() - before < (kept + 1 / 4) * size

    def judge() -> list[Comparison]:
        found = []
        for check, inputs in all_checks(pool):
            found.append(check.compare(right(pool, inputs), inputs))
            found.append(check.compare([torch.zeros_like(t) for t in answer(pool, inputs)], inputs))
            check.agrees(right(pool, inputs), inputs)
        inputs = next(pool.timing_sets())
        found.append(
            pool.check(inputs).compare_timed(right(pool, inputs), answer(pool, inputs), inputs)
        )
        return found

    judge()
    assert live_bytes() - before < (kept + 1 / 4) * size
    pool.reference.forget_draw()
    assert live_bytes() - before < size / 4


def test_what_is_known_of_a_layout_takes_no_memory(make: MakePool) -> None:
    pool = make()
    for tensor in (*pool.layouts[0].tensors, *pool.answer.tensors):
        assert tensor.is_meta
        assert tensor.shape == (ROWS, COLUMNS)
        assert tensor.dtype is torch.float32


MEASURE = """
import json, os, resource, sys
from pathlib import Path
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.pool import make_pool
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.tasks import read_task

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

def judge(path, free):
    task = read_task(Path(path))
    reference, (workload,) = Reference(task), task.workloads
    budget = Budget(0, 4 << 20, free)
    pool = make_pool(reference, workload, 2, budget, look_at(reference, workload, budget))
    assert pool.is_large
    for check in pool.hand_out_checks():
        inputs = check.draw()
        got = [t.clone() for t in pool.reference.call(pool.workload, inputs).tensors]
        got[0][0, 0] *= 1 + 1e-6
        assert check.compare(got, inputs).reason is None
        got[0][-1, 0] += 1e3
        if pool.rows is not None:
            assert check.compare(got, inputs).reason is not None
        del inputs, got

cases = json.loads(sys.argv[1])
for little, large, free in cases:  # so that all that is imported on the way is there
    judge(little, free)
for little, large, free in cases:  # in a process each: none uses what another has given back
    if os.fork() == 0:
        judge(little, free)  # again: of files that are mapped, a fork begins with none
        before = peak()
        judge(large, free)
        print(peak() - before, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.slow
def test_a_few_calls_are_all_that_memory_is_taken_for(write_task: WriteTask) -> None:
    cases = {
        "rows": ("return x * 2 + 1", 1 << 40),
        "rows in scarce memory": ("return x * 2 + 1", 0),
        "whole": ("return x - x[0]", 0),
    }
    asked = []
    for forward, free in cases.values():
        little = write_task(source(forward, "[torch.randn(100, 4096)]"), f"little_{len(asked)}")
        large = write_task(source(forward, "[torch.randn(1000, 4096)]"), f"large_{len(asked)}")
        asked.append((str(little.path), str(large.path), free))
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, json.dumps(asked)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # for what has threads does not fork well
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    taken = dict(zip(cases, map(int, ended.stdout.split()), strict=True))
    call = 2 * 4 * 1000 * 4096
    assert {name: size / call for name, size in taken.items() if size >= 4 * call} == {}
