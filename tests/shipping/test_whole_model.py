"""What a kernel is worth in a model: measured in turn, and the model left as it was."""

from __future__ import annotations

import pytest
import torch
from shipping_samples import WIDTH, RMSNorm
from test_parcel import optimized
from torch import nn

from kernel_smith.errors import BadInput
from kernel_smith.shipping.runtime.dropin import DropIn
from kernel_smith.shipping.whole_model import FEWEST_ROUNDS


class Watched(nn.Module):
    """Remembers whether it was called with the kernel in it, and fails when it is told to."""

    def __init__(self, fail_at: int = -1) -> None:
        super().__init__()
        self.norm, self.linear = RMSNorm(), nn.Linear(WIDTH, WIDTH)
        self.calls: list[bool] = []
        self.fail_at = fail_at

    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        self.calls.append(isinstance(self.norm, DropIn))
        if len(self.calls) == self.fail_at:
            raise ValueError("it fails")
        return self.linear(self.norm(x)) + shift


def test_a_model_is_called_with_the_kernel_and_without_in_turn() -> None:
    model = Watched()
    gain = optimized().gain_in(model, torch.randn(8, WIDTH), shift=1.0, seconds=0)
    assert gain.replaced == ["norm"]
    assert model.calls == [False, False, True, True] * FEWEST_ROUNDS
    ratio = gain.called.speedup
    assert 0 < ratio.low <= ratio.value <= ratio.high
    assert min(gain.called.before, gain.called.after) > 0
    assert gain.captured is None
    assert "not on a GPU" in str(gain)
    assert "ms before" in str(gain)
    assert not isinstance(model.norm, DropIn)


@pytest.mark.parametrize("patched", [False, True])
@pytest.mark.parametrize("fail_at", [-1, 3])
def test_the_model_is_left_as_it_was(patched: bool, fail_at: int) -> None:
    found, model = optimized(), Watched(fail_at)
    if patched:
        assert found.patch(model) == ["norm"]
    if fail_at > 0:
        with pytest.raises(ValueError, match="it fails"):
            found.gain_in(model, torch.randn(8, WIDTH), seconds=0)
    else:
        found.gain_in(model, torch.randn(8, WIDTH), seconds=0)
    assert isinstance(model.norm, DropIn) is patched


def test_a_model_without_such_a_module_is_refused() -> None:
    with pytest.raises(BadInput, match="no module of Linear is one that the kernel is for"):
        optimized().gain_in(nn.Linear(WIDTH, WIDTH), torch.randn(8, WIDTH))
