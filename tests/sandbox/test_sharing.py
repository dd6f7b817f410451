"""Whether a program drew its parameters in another order than the reference."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.evaluation.sandbox.sharing import rearranged


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_parameters_in_another_order_are_told_from_others(dtype: torch.dtype) -> None:
    values = torch.randn(40, 30).to(dtype)
    values[0, :2] = torch.tensor([0.0, -0.0])
    assert rearranged(values.t(), values)
    assert rearranged(values.flatten().flip(0), values)
    assert rearranged(torch.where(values == 0, 0.0, values), values)
    other = values.clone()
    other[3, 3] += 1
    assert not rearranged(other, values)
    other[4, 4] -= 1  # the sum may be the same again, and the elements are not
    assert not rearranged(other, values)
    assert not rearranged(values[1:], values)


def test_other_values_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("it takes many times their memory")

    monkeypatch.setattr(torch.Tensor, "sort", refuse)
    assert not rearranged(torch.randn(100), torch.randn(100))
