"""What an output would be without its inputs, looked at whole or in pieces."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.evaluation.judge.values import pieces, variation
from kernel_smith.evaluation.judge.values.variation import (
    flat_mean,
    larger_half,
    mean_over_draws,
    spread_of,
)


@pytest.fixture(params=[1 << 20, 100], ids=["whole", "pieces"])
def in_pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pieces._PIECE, "cpu", request.param)


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_statistics_of_several_draws(dtype: torch.dtype) -> None:
    draws = [(torch.randn(40, 70) + 3).to(dtype) for _ in range(3)]
    wide = torch.stack(draws).double()
    (mean,) = mean_over_draws([[t] for t in draws])
    assert torch.equal(mean, wide.mean(0).to(dtype))
    (spread,) = spread_of([[t] for t in draws])
    expected = min(wide.var(0).mean().sqrt(), wide[0].std(correction=0))
    assert spread == pytest.approx(float(expected))
    assert torch.allclose(flat_mean(draws[0]).double(), wide[0].mean(), rtol=0.01)


@pytest.mark.usefixtures("in_pieces")
def test_the_larger_half_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = torch.randn(60, 50)
    half = larger_half(answer)
    kept = half != 0
    assert torch.equal(half[kept], answer[kept])
    assert answer[kept].abs().min() > answer[~kept].abs().max()
    assert kept.float().mean() == pytest.approx(0.5, abs=0.01)
    monkeypatch.setattr(variation, "_SAMPLED", 300)
    assert (larger_half(answer) != 0).float().mean() == pytest.approx(0.5, abs=0.2)


def test_few_numbers_have_no_larger_half() -> None:
    assert not larger_half(torch.randn(7)).any()
    assert not larger_half(torch.arange(100)).any()
    assert not flat_mean(torch.randn(1)).any()
    assert spread_of([[torch.randn(1)], [torch.randn(1)]])[0] > 0
    assert spread_of([[torch.randn(3)], [torch.randn(4)]]) == [0.0]
