"""Values of one byte that two programs round differently."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.values.coarse import count_a_step_apart

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
BYTES = (torch.int8, torch.uint8, *FP8)


def all_values(dtype: torch.dtype) -> torch.Tensor:
    """Of a type of one byte, in order, without those that are not finite."""
    values = torch.arange(256, dtype=torch.uint8).view(dtype)
    finite = values[values.float().isfinite()]
    return finite[finite.float().argsort()]


@given(st.sampled_from(BYTES), st.integers(0, 10_000))
def test_a_value_beside_another_is_a_step_away(dtype: torch.dtype, index: int) -> None:
    order = all_values(dtype)
    order = order[order.float().diff(prepend=torch.tensor([-torch.inf])) > 0]  # one zero
    at = index % (len(order) - 2)
    below, value, above = order[at : at + 3].unbind()
    assert count_a_step_apart(below[None], value[None]) == 1
    assert count_a_step_apart(value[None], below[None]) == 1
    assert count_a_step_apart(below[None], above[None]) is None


@pytest.mark.parametrize("dtype", FP8)
def test_both_zeros_are_one_and_nan_is_beside_nothing(dtype: torch.dtype) -> None:
    zeros = torch.tensor([0.0, -0.0]).to(dtype)
    assert count_a_step_apart(zeros[:1], zeros[1:]) == 0
    nan = torch.tensor([float("nan")]).to(dtype)
    largest = torch.tensor([torch.finfo(dtype).max]).to(dtype)
    assert count_a_step_apart(nan, nan) == 0
    assert count_a_step_apart(nan, largest) is None


@given(st.integers(0, 300), st.integers(1, 20_000))
def test_all_that_differ_are_counted(moved: int, size: int) -> None:
    want = torch.zeros(size, dtype=torch.int8)
    got = want.clone()
    got[:moved] = 1
    assert count_a_step_apart(got, want) == min(moved, size)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32, torch.bfloat16])
def test_other_types_have_no_steps(dtype: torch.dtype) -> None:
    assert count_a_step_apart(torch.zeros(4, dtype=dtype), torch.ones(4, dtype=dtype)) is None


def test_nothing_is_as_nothing() -> None:
    empty = torch.empty(0, dtype=torch.int8)
    assert count_a_step_apart(empty, empty) == 0
