"""Replacing the modules of a live model, and taking it back."""

from __future__ import annotations

import pytest
import torch
from shipping_samples import WIDTH, RMSNorm
from torch import nn

from kernel_smith.shipping.runtime.dropin import DropIn
from kernel_smith.shipping.runtime.replacement import Replacement
from kernel_smith.shipping.runtime.spec import Spec


class Other(RMSNorm):
    """Another class, which the kernel was not made for."""


def test_matching_modules_are_replaced_and_come_back(norm_kernel: Replacement) -> None:
    model = nn.Sequential(RMSNorm(), nn.Linear(WIDTH, WIDTH), RMSNorm(), RMSNorm(32), Other())
    names = list(model.state_dict())
    x = torch.randn(8, WIDTH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.no_grad():
        expected = model[:3](x)
        assert norm_kernel.patch(model) == ["0", "2"]
        torch.testing.assert_close(model[:3](x), expected)
        assert model[0].counts.kernel == model[2].counts.kernel == 1
    assert list(model.state_dict()) == names
    assert optimizer.param_groups[0]["params"][0] is model[0].weight
    assert norm_kernel.patch(model) == []  # they are replaced already
    assert norm_kernel.unpatch(model) == ["0", "2"]
    assert not any(isinstance(part, DropIn) for part in model.modules())
    assert type(model[0]) is RMSNorm
    with torch.no_grad():
        assert torch.equal(model[:3](x), expected)


def test_a_model_may_be_the_module_itself(norm_kernel: Replacement) -> None:
    model = RMSNorm()
    assert norm_kernel.patch(model) == [""]
    assert norm_kernel.unpatch(model) == [""]


def test_other_settings_do_not_match(norm_kernel: Replacement) -> None:
    model = nn.Sequential(RMSNorm())
    model[0].epsilon = 0.5
    assert norm_kernel.patch(model) == []


def test_another_class_is_replaced_where_it_is_named(norm_kernel: Replacement) -> None:
    model = nn.Sequential(Other(), Other(32), RMSNorm())
    assert norm_kernel.patch(model, where=Other) == ["0"]
    with torch.no_grad():
        model[0](torch.randn(8, WIDTH))
    assert model[0].counts.kernel == 1


class Gemma(RMSNorm):
    """The same names and sizes, and another result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


def test_a_class_that_computes_something_else_is_not_replaced(norm_kernel: Replacement) -> None:
    tuned = Other()
    tuned.epsilon = 2e-6  # which results do not show
    half, training = Other().half(), Other().train()
    model = nn.Sequential(tuned, half, training)
    assert norm_kernel.patch(nn.Sequential(Gemma()), where=Gemma) == []
    assert norm_kernel.patch(model, where=Other) == ["2"]
    assert training.training


def test_a_module_that_computes_something_else_is_refused(norm_kernel: Replacement) -> None:
    with pytest.raises(ValueError, match="for another module: its results differ"):
        norm_kernel.module(Gemma())
    tuned = RMSNorm()
    tuned.epsilon = 2e-6
    with pytest.raises(ValueError, match="for another module: its epsilon differs"):
        norm_kernel.module(tuned)
    norm_kernel.module(Other())


def test_a_kernel_for_a_task_needs_to_be_told_the_class(norm_kernel: Replacement) -> None:
    spec = norm_kernel.spec
    of_task = Replacement(
        Spec(spec.name, spec.kernel, spec.reference, spec.workloads, "cpu"), None, "kernel_smith"
    )
    with pytest.raises(ValueError, match=r"name it: patch\(model, where=MyNorm\)"):
        of_task.patch(nn.Sequential(RMSNorm()))


def test_hooks_within_a_module_are_heard(norm_kernel: Replacement) -> None:
    model = nn.Sequential(RMSNorm())
    norm_kernel.patch(model)
    heard = []
    model[0].register_forward_hook(lambda *_: heard.append(1))
    with torch.no_grad():
        model(torch.randn(8, WIDTH))
    assert heard == [1]
    assert model[0].counts.kernel == 1
