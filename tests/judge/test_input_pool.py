"""Secret input sets: no content twice, always in the task's domain, replaced after use."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import cast

import pytest
import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs import pool as stock_module
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.checks import SmallCheck
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.mixing import Mixer
from kernel_smith.evaluation.judge.inputs.pool import InputPool, make_pool
from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference
from kernel_smith.records import Task, Variant

WriteTask = Callable[..., Task]
MakeStock = Callable[..., InputPool]

FLOATING = [v.value for v in Variant if v not in (Variant.EQUAL, Variant.STRIDED)]
BUDGET = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)


def source(
    inputs: str, forward: str = "return x * 2", arguments: str = "x", settings: str = "{}"
) -> str:
    return f"""
import torch

TASK = {settings}

class Model(torch.nn.Module):
    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return {inputs}
"""


@pytest.fixture
def make_stock(write_task: WriteTask, monkeypatch: pytest.MonkeyPatch) -> MakeStock:
    """A stock with a pool of a few sets, so that mixing is reached soon."""

    def make(text: str, pool: int = 6, seeds: int = 2, kept: int = BUDGET.kept) -> InputPool:
        monkeypatch.setattr(stock_module, "_MAX_TIMING_SETS", pool)
        task = write_task(text)
        reference, (workload,) = Reference(task), task.workloads
        budget = BUDGET._replace(kept=kept)
        look = look_at(reference, workload, budget)
        made = make_pool(reference, workload, seeds, budget, look)
        assert isinstance(made, InputPool)
        return made

    return make


def content(inputs: InputSet) -> bytes:
    return b"|".join(t.contiguous().numpy().tobytes() for t in inputs.tensors)


@pytest.mark.parametrize(
    "inputs",
    [
        "[torch.randn(4, 8)]",
        "[torch.randn(2, 50)]",
        "[torch.randn(1, 100)]",
        "[torch.randn(1, 1)]",
        "[torch.randn(2)]",
        "[torch.randn(())]",
        "[torch.randint(1 << 40, (8,))]",
        "[torch.randn(2, 3).t()]",
    ],
)
def test_no_content_comes_twice(make_stock: MakeStock, inputs: str) -> None:
    stock = make_stock(source(inputs))
    contents = [content(inputs) for inputs in islice(stock.timing_sets(), 200)]
    assert len(set(contents)) == 200


@pytest.fixture
def make_device_stock(make_stock: MakeStock) -> MakeStock:
    """A stock that hands out as it does on a device, where sets are mixed in blocks."""

    def make(text: str, pool: int = 6) -> InputPool:
        stock = make_stock(text, pool=pool)
        stock._kind = "cuda"
        return stock

    return make


@pytest.mark.parametrize(
    "inputs", ["[torch.randn(4, 8)]", "[torch.randn(2, 30).bfloat16()]", "[torch.randn(3)]"]
)
def test_no_content_comes_twice_from_blocks(make_device_stock: MakeStock, inputs: str) -> None:
    stock = make_device_stock(source(inputs))
    sets = islice(stock.timing_sets(), 600)
    contents = [b"".join(bytes(t.view(torch.uint8).numpy()) for t in s.tensors) for s in sets]
    assert len(set(contents)) == 600


def test_where_mixtures_run_out_sets_are_drawn(
    make_device_stock: MakeStock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four sets and one shift: twelve mixtures are all that there are."""
    monkeypatch.setattr(Mixer, "choose_shift", staticmethod(lambda dice: 0))
    stock = make_device_stock(source("[torch.randn(4, 8)]"), pool=4)
    sets = [inputs.tensors[0].flatten().tolist() for inputs in islice(stock.timing_sets(), 40)]
    pooled = {value for x in sets[:4] for value in x}
    mixed = [set(x) <= pooled for x in sets[4:]]
    assert sum(mixed) <= 12
    assert mixed[0] and not mixed[-1]
    assert len({tuple(x) for x in sets}) == 40


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_tensors_in_another_order_are_not_mixed_in_blocks(make_stock: MakeStock, kind: str) -> None:
    stock = make_stock(source("[torch.randn(6, 8).t()]"))
    stock._kind = kind
    assert all(s.tensors[0].stride() == (1, 8) for s in islice(stock.timing_sets(), 40))


def test_the_first_sets_are_the_pool_in_an_order_of_its_own(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(8)]"), pool=40)
    first = [content(inputs) for inputs in islice(stock.timing_sets(), 40)]
    second = [content(inputs) for inputs in islice(stock.timing_sets(), 40)]
    assert sorted(first) == sorted(second)
    assert first != second


def test_what_nobody_asked_for_is_not_drawn_and_what_was_drawn_is_kept(
    make_stock: MakeStock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock_module, "_SETS_AT_FIRST", 10)
    monkeypatch.setattr(stock_module, "_MAX_SECONDS", 1000.0)
    stock = make_stock(source("[torch.randn(6, 48)]"), pool=60)
    assert stock.mixes and len(stock._pool) == 10
    first = {content(inputs) for inputs in islice(stock.timing_sets(), 40)}
    assert len(first) == len(stock._pool) == 40
    second = {content(inputs) for inputs in islice(stock.timing_sets(), 40)}
    assert first == second, "a candidate that needs no more than others did causes no drawing"
    assert len({content(inputs) for inputs in islice(stock.timing_sets(), 90)}) == 90
    assert len(stock._pool) == 60, "the rest was mixed"


def test_mixtures_are_made_of_elements_that_the_author_drew_and_no_row_returns(
    make_stock: MakeStock,
) -> None:
    stock = make_stock(source("[torch.randn(6, 48)]"))
    assert stock.mixes
    sets = [inputs.tensors[0] for inputs in islice(stock.timing_sets(), 60)]
    drawn = {value for x in sets[:6] for value in x.flatten().tolist()}
    rows = [tuple(row) for x in sets for row in x.tolist()]
    mixtures = [x for x in sets[6:] if set(x.flatten().tolist()) <= drawn]
    assert len(mixtures) > 50  # one whose turn came before is replaced by a set of its own
    assert len(set(rows)) == len(rows)


def test_mixtures_keep_layout_and_nesting(make_stock: MakeStock) -> None:
    text = source(
        "[torch.randn(5, 6).t(), torch.randint(9, (6, 5)), 0.5]",
        "return (x + i) * s",
        "x, i, s",
    )
    stock = make_stock(text)
    assert stock.mixes
    seen = set()
    for inputs in islice(stock.timing_sets(), 60):
        transposed, integers = inputs.tensors
        assert transposed.stride() == (1, 6)
        assert inputs.arguments()[2] == 0.5
        seen.add(content(InputSet(None, [integers])))
    assert len(seen) == 60, "integers are as new as numbers"


@pytest.mark.parametrize(
    ("inputs", "forward"),
    [
        # Rows of two sets need not fit together.
        (
            "[(lambda m: m @ m.T + 4 * torch.eye(4))(torch.randn(4, 4))]",
            "assert torch.allclose(x, x.T); return torch.linalg.cholesky(x)",
        ),
        (
            "[torch.randn(8).sort().values]",
            "assert (x.diff() >= 0).all(); return x.cumsum(0)",
        ),
        (
            "[torch.softmax(torch.randn(16), 0)]",
            "return torch.where((x.sum() - 1).abs() < 1e-5, x.log(), float('nan'))",
        ),
        # Another length every time.
        ("[torch.randn(int(torch.randint(3, 99, ())))]", "return x * 2"),
    ],
)
def test_sets_stay_in_the_domain_where_mixtures_would_leave_it(
    make_stock: MakeStock, inputs: str, forward: str
) -> None:
    stock = make_stock(source(inputs, forward, settings='{"variants": []}'))
    assert not stock.mixes
    for drawn in islice(stock.timing_sets(), 60):
        answer = stock.reference.call(stock.workload, drawn).tensors[0]
        assert answer.isfinite().all()


def test_the_pool_respects_its_limit_in_bytes(make_stock: MakeStock) -> None:
    limited = make_stock(source("[torch.randn(256)]"), pool=99, kept=20 * 4 * 256)
    assert len(limited._pool) == 20


def test_checks_are_the_authors_seeds_and_the_variants(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(4, 4)]"), seeds=3)
    labels = sorted(check.label for check in stock.checks)
    assert labels == sorted(["author"] * 3 + FLOATING)
    assert stock.author.label == "author"
    assert stock.left_out == []
    assert len({content(check.inputs) for check in stock.checks}) == len(stock.checks)


@pytest.mark.parametrize(
    ("forward", "left_out"),
    [
        ("return torch.exp(x)", ["large", "spikes"]),
        ("assert x.abs().max() < 100; return x * 2", ["large", "spikes"]),
        ("if x.abs().max() > 100: raise TypeError('too large')\n        return x", None),
        ("if x.abs().max() > 100: raise KeyError('too large')\n        return x", None),
        ("if x.abs().max() > 100: raise OverflowError\n        return x", None),
    ],
)
def test_variants_outside_the_domain_are_left_out(
    make_stock: MakeStock, forward: str, left_out: list[str] | None
) -> None:
    settings = '{"variants": ["large", "small", "spikes"]}'
    stock = make_stock(source("[torch.rand(64) + 1]", forward, settings=settings))
    assert stock.left_out == (left_out or ["large", "spikes"])
    assert {check.label for check in stock.checks} == {"author", "small"}


def test_a_variant_on_which_the_reference_is_inaccurate_is_left_out(make_stock: MakeStock) -> None:
    settings = '{"variants": ["large", "small"]}'
    stock = make_stock(source("[torch.rand(64)]", "return (x + 1e3) - 1e3", settings=settings))
    assert stock.left_out == ["small"]


def test_a_variant_on_which_rounding_chooses_is_left_out(make_stock: MakeStock) -> None:
    """Of tiny logits, the softmax is the same for all in single precision."""
    logits, settings = "[torch.randn(32, 4) / 64]", '{"variants": ["large", "small", "tiny"]}'
    router = "return torch.softmax(x, -1).topk(2).indices"
    assert make_stock(source(logits, router, settings=settings)).left_out == ["tiny"]
    plain = "return x.topk(2).indices"
    assert make_stock(source(logits, plain, settings=settings)).left_out == []


def test_transposed_inputs_get_all_variants(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(8, 6).t()]", settings='{"variants": ["spikes"]}'))
    assert stock.left_out == []


def test_handing_out_shuffles_and_marks_as_used(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(4)]"), seeds=8)
    orders = set()
    for _ in range(5):
        handed_out = stock.hand_out_checks()
        assert {id(check) for check in handed_out} == {id(check) for check in stock.checks}
        orders.add(tuple(stock.checks.index(cast(SmallCheck, check)) for check in handed_out))
    assert len(orders) > 1
    assert all(check.used for check in stock.checks)


def test_what_something_was_told_about_serves_nobody_however_soon_the_next_one_comes(
    make_stock: MakeStock,
) -> None:
    stock = make_stock(source("[torch.randn(4, 4)]"))

    def show_one_candidate() -> set[bytes]:
        shown = [check.draw() for check in stock.hand_out_checks()]
        shown += [check.draw() for check in stock.hand_out_hidden_checks()]
        shown += islice(stock.timing_sets(), 6)
        return {content(inputs) for inputs in shown}

    first = show_one_candidate()
    stock.reveal()
    second, third = show_one_candidate(), show_one_candidate()
    assert len(first) == len(second)
    assert not first & second
    assert second & third, "of one that was accepted, nothing was told"


def test_idle_time_replaces_everything_that_was_used(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(4, 4)]"))
    assert not stock.redraw_one()
    before = {content(check.draw()) for check in stock.hand_out_checks()}
    before |= {content(inputs) for inputs in islice(stock.timing_sets(), 6)}
    turns = 0
    while stock.redraw_one():
        turns += 1
    assert turns == 6 + len(stock.checks)
    after = {content(check.inputs) for check in stock.checks}
    after |= {content(inputs) for inputs in islice(stock.timing_sets(), 6)}
    assert not before & after
    assert not any(check.used for check in stock.checks)


def test_idle_time_leaves_unused_sets_alone(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(4, 4)]"))
    pool = [content(inputs) for inputs in stock._pool]
    seen = {content(inputs) for inputs in islice(stock.timing_sets(), 2)}
    while stock.redraw_one():
        pass
    kept = {content(inputs) for inputs in stock._pool}
    assert kept & set(pool) == set(pool) - seen


def test_replaced_checks_keep_their_kind_and_get_the_right_answer(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(4, 4)]"))
    labels = [check.label for check in stock.checks]
    stock.hand_out_checks()
    while stock.redraw_one():
        pass
    assert [check.label for check in stock.checks] == labels
    for check in stock.checks:
        answer = stock.reference.call(stock.workload, check.inputs).tensors[0]
        assert torch.equal(answer, check.expected.reference.tensors[0])


def test_an_error_in_get_inputs_is_the_authors_and_no_missing_variant(
    make_stock: MakeStock,
) -> None:
    text = source("[torch.randn(4) if next(turns) < 4 else 1 / 0]") + "\nturns = iter(range(9))\n"
    with pytest.raises(BadInput, match="ZeroDivisionError"):
        make_stock(text)


@pytest.mark.parametrize("variant", Variant)
def test_every_variant_can_be_asked_for_alone(make_stock: MakeStock, variant: Variant) -> None:
    settings = f'{{"variants": ["{variant.value}"]}}'
    inputs = "[torch.randn(4, 8), torch.randint(1, 9, (4, 8))]"
    stock = make_stock(source(inputs, "return x * i", "x, i", settings))
    assert stock.checks[-1].label == variant.value


def test_equal_integers_are_not_spoken_of_where_there_are_none(make_stock: MakeStock) -> None:
    stock = make_stock(source("[torch.randn(4, 8), torch.arange(32)]", "return x + i[0]", "x, i"))
    assert "equal" not in [*stock.left_out, *(check.label for check in stock.checks)]


def test_few_sets_are_drawn_where_they_can_be_mixed(
    make_stock: MakeStock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock_module, "_ENOUGH_TO_MIX", {"cpu": 8})
    mixing = make_stock(source("[torch.randn(4, 8)]"), pool=20)
    drawing = make_stock(source("[torch.randn(4, 8), torch.randperm(32)]", arguments="x, i"), 20)
    for stock, size in ((mixing, 8), (drawing, 20)):
        assert len(list(islice(stock.timing_sets(), 30))) == 30
        assert len(stock._pool) == size


CAPPED = """
import torch

TASK = {"precision": "PRECISION"}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(3 * torch.randn(60, 1003))

    def forward(self, x):
        return 30 * torch.tanh(x @ self.weight / 30)

def get_inputs():
    return [torch.randn(5, 60)]
"""


def test_a_variant_that_the_allowed_precision_cannot_serve_is_left_out(
    make_stock: MakeStock,
) -> None:
    """Of large values a tanh keeps the sign alone, and TF32 does not know the sign of each."""
    assert Variant.LARGE.value in make_stock(CAPPED.replace("PRECISION", "tf32")).left_out
    assert Variant.LARGE.value not in make_stock(CAPPED.replace("PRECISION", "strict")).left_out


@pytest.mark.parametrize(
    ("inputs", "forward", "expected"),
    [
        ("[torch.randn(40), 0.5]", "return x * s", True),
        ("[torch.randn(40), float(torch.rand(()))]", "return x * s", True),
        # A number that says how the tensor was made.
        (
            "(lambda s: [torch.full((40,), s) * torch.randn(40).sign(), s])(float(torch.rand(())))",
            "assert (x.abs() == s).all(); return x * s",
            False,
        ),
    ],
)
def test_other_inputs_go_with_the_numbers_that_a_call_was_told(
    make_stock: MakeStock, inputs: str, forward: str, expected: bool
) -> None:
    settings = "{'variants': []}"
    stock = make_stock(source(inputs, forward, "x, s", settings))
    assert stock.can_replace_inputs is expected
    bound, drawn = islice(stock.timing_sets(), 2)
    replaced = stock.in_place_of(bound, drawn)
    assert replaced.fits_in_place_of(bound)
    assert replaced.arguments()[1] == bound.arguments()[1]
    assert torch.equal(replaced.tensors[0], drawn.tensors[0])
