"""Whatever a module holds may change under a kernel: it is noticed in the next call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm, replacement_of
from torch import nn
from torch.autograd import forward_ad

from kernel_smith.shipping.runtime.dropin import DropIn
from kernel_smith.shipping.runtime.replacement import Replacement


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture
def plain() -> RMSNorm:
    return RMSNorm()


@pytest.fixture
def fast(norm_kernel: Replacement, plain: RMSNorm) -> DropIn:
    found = norm_kernel.module(plain)
    assert isinstance(found, DropIn)
    found(rows())
    return found


def rows() -> torch.Tensor:
    return torch.randn(8, WIDTH)


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shift = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


class Settings(nn.Module):
    """Holds what no state_dict knows."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.full((1,), 2.0)
        self.factors = {"a": 2.0}
        self.listed = [2.0]
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x * self.scale * self.factors["a"] * self.listed[0])


SETTINGS_KERNEL = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 8 + 1
"""
CHANGES: list[Callable[[Any], object]] = [
    lambda module: setattr(module, "scale", torch.full((1,), 5.0)),
    lambda module: module.scale.fill_(5.0),
    lambda module: setattr(module, "factors", {"a": 5.0}),
    lambda module: module.factors.update(a=5.0),
    lambda module: module.listed.__setitem__(0, 5.0),
    lambda module: setattr(module.inner, "shift", 5.0),
]


@pytest.mark.parametrize("change", CHANGES)
def test_settings_of_all_kinds_are_watched(change: Callable[[Any], object]) -> None:
    plain = Settings()
    replacement = replacement_of(plain, rows(), SETTINGS_KERNEL)
    fast, x = replacement.module(plain), rows()
    torch.testing.assert_close(fast(x), plain(x))
    change(fast)
    plain.scale, plain.factors, plain.listed = fast.scale, fast.factors, fast.listed
    torch.testing.assert_close(fast(x), plain(x))
    assert fast.counts.kernel == 1
    other = copy.deepcopy(plain)
    assert replacement.patch(nn.Sequential(other)) == []


SWAPS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda weight: weight.double(),
    lambda weight: torch.stack([weight, weight], -1)[:, 0],
    lambda weight: weight[:1],
]


@pytest.mark.parametrize("swap", SWAPS)
def test_data_that_was_swapped_takes_the_reference(
    fast: DropIn, plain: RMSNorm, swap: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    plain.weight.data = swap(plain.weight.data)
    x = rows()
    torch.testing.assert_close(fast(x), plain(x))
    assert (fast.counts.kernel, sum(fast.counts.reference.values())) == (1, 1)


def test_weights_that_are_gone_are_an_error_and_no_crash(fast: DropIn, plain: RMSNorm) -> None:
    plain.weight.data = torch.empty(0)
    with pytest.raises(RuntimeError, match="must match"):
        fast(rows())


def test_values_of_a_buffer_may_be_swapped() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.full((WIDTH,), 2.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.mask

    kernel = SETTINGS_KERNEL.replace("x * 8 + 1", "x + x")
    plain, x = Masked(), rows()
    fast = replacement_of(plain, rows(), kernel).module(plain)
    torch.testing.assert_close(fast(x), plain(x))
    plain.mask.data = torch.full((WIDTH,), 3.0)
    torch.testing.assert_close(fast(x), plain(x))
    assert fast.counts.kernel == 1


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")  # PyTorch's own use of it
def test_derivatives_forward_are_the_references(fast: DropIn, plain: RMSNorm) -> None:
    x, tangent = rows(), rows()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        found, expected = (forward_ad.unpack_dual(each(dual)) for each in (fast, plain))
    torch.testing.assert_close(found.tangent, expected.tangent)
    assert fast.counts.reference == {"derivatives forward": 1}


def test_numbers_of_another_kind_are_the_references(norm_kernel: Replacement) -> None:
    anew = Replacement(norm_kernel.spec, None, norm_kernel.package)
    plain = RMSNorm()
    torch.set_default_dtype(torch.float64)
    try:
        fast = anew.module(plain)
        fast(rows().float())
        assert fast.counts.reference == {"another default dtype": 1}
    finally:
        torch.set_default_dtype(torch.float32)
    fast(rows())
    assert fast.counts.kernel == 1


def test_what_is_to_be_negated_when_it_is_read_is_the_references() -> None:
    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            return x * scale

    kernel = NORM_KERNEL.replace("forward(self, x)", "forward(self, x, scale)").replace(
        "return y", "return x * torch.tensor([]).new_tensor(scale.numpy(force=True))"
    )
    plain, x = Scaled(), rows()
    fast = replacement_of(plain, (x, torch.ones(1)), kernel).module(plain)
    lazy = torch.view_as_complex(torch.ones(1, 2)).conj().imag
    assert lazy.is_neg()
    torch.testing.assert_close(fast(x, lazy), -x)
    assert fast.counts.reference == {"other arguments": 1}


def test_a_kernel_that_was_built_in_inference_mode_serves_outside() -> None:
    kernel = SETTINGS_KERNEL.replace(
        "    def forward(self, x):\n        return x * 8 + 1",
        "    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("place", torch.empty(8, 64))\n\n'
        "    def forward(self, x):\n        return self.place.copy_(x).add_(1).clone()",
    )
    plain, x = Inner(), rows()
    replacement = replacement_of(plain, x, kernel)
    with torch.inference_mode():
        fast = replacement.module(plain)
        torch.testing.assert_close(fast(x), plain(x))
    torch.testing.assert_close(fast(x), plain(x))
    assert fast.counts.kernel == 2


def test_drop_ins_of_a_class_are_of_one_class(norm_kernel: Replacement) -> None:
    model = nn.Sequential(RMSNorm(), RMSNorm())
    assert norm_kernel.patch(model) == ["0", "1"]
    assert type(model[0]) is type(model[1])
    states = torch.func.stack_module_state(list(model))

    def call(parameters: Any, buffers: Any, x: torch.Tensor) -> Any:
        return torch.func.functional_call(model[0], (parameters, buffers), (x,))

    x = rows()
    found = torch.vmap(call, in_dims=(0, 0, None))(*states, x)
    torch.testing.assert_close(found, torch.stack([each(x) for each in model]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_script_of_torch_jit_holds_the_reference(fast: DropIn, plain: RMSNorm) -> None:
    x = rows()
    scripted = torch.jit.script(nn.Sequential(fast))
    torch.testing.assert_close(scripted(x), plain(x))
