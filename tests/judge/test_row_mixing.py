"""Large sets out of one that was drawn: each element of its own row or of another, all new."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.inputs import row_mixing
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.large_pool import LargePool
from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference
from kernel_smith.evaluation.judge.inputs.row_mixing import are_mixable, mix_rows
from kernel_smith.evaluation.judge.inputs.rows import Rows
from kernel_smith.records import Task, Workload

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn)
BUDGET = Budget(kept=0, at_once=4 << 10, free=1 << 30)
TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {forward}

def get_inputs():
    return [{inputs}]
"""
DRAWN = "torch.randn(32, 40)"


def numbered(rows: int, columns: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Every element says where it comes from."""
    return torch.arange(rows * columns).view(rows, columns).to(dtype)


@given(
    st.integers(2, 9), st.integers(1, 70), st.integers(0, 2**63 - 1), st.sampled_from((5, 64, 999))
)
def test_each_element_comes_from_its_row_or_from_one_as_far_ahead_as_all(
    rows: int, columns: int, seed: int, piece: int
) -> None:
    drawn = InputSet(["x"], [numbered(rows, columns)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_mixing, "_PIECE", piece)
        (mixed,) = mix_rows(drawn, seed).tensors
    ahead = ((mixed - drawn.tensors[0]) % (rows * columns)).unique()
    assert bool((ahead % columns == 0).all())
    assert len(ahead[ahead > 0]) <= 1
    assert content(drawn) == content(InputSet(["x"], [numbered(rows, columns)]))


def content(inputs: InputSet) -> list[list[int]]:
    return [t.contiguous().view(torch.uint8).flatten().tolist() for t in inputs.tensors]


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_seed_makes_one_set_and_others_make_others(dtype: torch.dtype) -> None:
    drawn = InputSet(["x", "y"], [torch.randn(32, 40).to(dtype), torch.randn(32, 3, 9).to(dtype)])
    sets = [content(mix_rows(drawn, seed)) for seed in range(20)]
    assert sets[7] == content(mix_rows(drawn, 7))
    assert not any(one == other for i, one in enumerate(sets) for other in sets[:i])
    size = 40 * dtype.itemsize
    rows = [str(mixed[0][i : i + size]) for mixed in sets for i in range(0, 32 * size, size)]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize(
    ("tensor", "split", "mixable"),
    [
        (torch.randn(32, 40), True, True),
        (torch.randn(32, 40), False, False),  # the same in all sets
        (torch.randn(8, 40), True, False),  # few mixtures
        (torch.randn(32, 4), True, False),
        (torch.randn(32), True, False),
        (torch.randn(1, 40).repeat(32, 1), True, False),  # each row the same
        (torch.randint(9, (32, 40)), True, False),  # integers may mean something together
        (torch.randn(40, 32).t(), True, False),
    ],
)
def test_only_what_would_be_new_is_mixed(tensor: torch.Tensor, split: bool, mixable: bool) -> None:
    inputs = InputSet(["x"], [tensor])
    assert are_mixable(inputs, Rows(len(tensor), (split,))) is mixable


class Counting(Reference):
    draws = 0

    def draw(self, workload: Workload, seed: int) -> InputSet:
        self.draws += 1
        return super().draw(workload, seed)


def pool_of(task: Task) -> tuple[LargePool, Counting]:
    reference, (workload,) = Counting(task), task.workloads
    look = look_at(reference, workload, BUDGET)
    pool = LargePool(reference, workload, look, BUDGET.at_once)
    return pool, reference


def text(forward: str = "torch.softmax(x, -1)", inputs: str = DRAWN) -> str:
    return TASK.format(forward=forward, inputs=inputs)


def test_one_draw_serves_a_candidate_and_the_next_gets_another(
    write_task: Callable[..., Task],
) -> None:
    pool, reference = pool_of(write_task(text()))
    assert reference.draws == 1  # for a first look
    reference.draws = 0
    handed_out = []
    for draws in (0, 1):  # the one that was learnt from is still there
        handed_out += [check.draw() for check in pool.hand_out_checks()]
        handed_out += islice(pool.timing_sets(), 8)
        assert reference.draws == draws
    first, second = (handed_out[i].tensors[0] for i in (len(handed_out) // 2 - 1, -1))
    common = set(first.flatten().tolist()) & set(second.flatten().tolist())
    assert len(common) < 10  # now and then two numbers that were drawn are the same
    assert len({str(content(each)) for each in handed_out}) == len(handed_out)


@pytest.mark.parametrize(
    "outside",
    [
        text("x / (x.diff(dim=-1) > 0).all(-1, keepdim=True)", "torch.randn(32, 40).sort(-1)[0]"),
        text("x - x.mean(0)"),  # not separable
        text("x * 2", "torch.randn(1, 40).repeat(32, 1)"),
    ],
)
def test_what_cannot_be_mixed_is_drawn_each_time(
    outside: str, write_task: Callable[..., Task]
) -> None:
    pool, reference = pool_of(write_task(outside))
    reference.draws = 0
    list(islice(pool.timing_sets(), 5))
    assert reference.draws == 5
