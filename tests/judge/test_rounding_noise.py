"""Arithmetic that rounds a little differently each time, and equal values alike if asked to."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.evaluation.judge.values.rounding_noise import RoundingNoise

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_values_stay_equal_and_others_move_either_way(dtype: torch.dtype) -> None:
    values = (torch.rand(500) + 1).to(dtype).unique()
    right, twice = values + values, torch.stack([values, values])
    with RoundingNoise(keep_equal=True):
        moved, again = (twice + values for _ in range(2))
    assert torch.equal(moved[0], moved[1])
    assert not torch.equal(moved, again)
    off = (moved[0].double() - right.double()) / (right.double() * torch.finfo(dtype).eps)
    assert off.abs().max() <= 2.5  # rounded to a number of this kind once more
    assert off.min() < -0.9 and off.max() > 0.9


def test_each_element_has_its_own_noise() -> None:
    with RoundingNoise():
        moved = torch.full((1000,), 0.3) + torch.full((1000,), 0.4)
    assert len(moved.unique()) > 2


@pytest.mark.parametrize("keep_equal", [False, True])
def test_whole_numbers_stay(keep_equal: bool) -> None:
    counted = torch.arange(5)
    with RoundingNoise(keep_equal=keep_equal):
        assert torch.equal(counted + counted, 2 * torch.arange(5))
        assert torch.equal(counted.float() + 1, torch.arange(1.0, 6.0))
