"""Verified calls take the kernel; every other call is right, too, or a clear error."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm, replacement_of

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
    return found


def rows(count: int = 8) -> torch.Tensor:
    return torch.randn(count, WIDTH)


def test_verified_calls_take_the_kernel(fast: DropIn, plain: RMSNorm) -> None:
    for x in (rows(8), rows(16)):
        torch.testing.assert_close(fast(x), plain(x))
        torch.testing.assert_close(fast(x=x), plain(x))
    assert (fast.counts.kernel, fast.counts.reference) == (4, {})
    assert "4 by the kernel" in repr(fast)


def test_a_drop_in_is_what_it_replaces(fast: DropIn, plain: RMSNorm) -> None:
    assert isinstance(fast, RMSNorm)
    assert list(fast.state_dict()) == list(plain.state_dict())
    assert fast.weight is plain.weight
    assert fast.epsilon == plain.epsilon
    assert inspect.signature(fast.forward) == inspect.signature(plain.forward)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rows(3),
        lambda: rows(8)[None],
        lambda: torch.empty(0, WIDTH),
        lambda: rows(8).double(),
        lambda: rows(8).half(),
        lambda: torch.randn(WIDTH, 8).t(),
        lambda: torch.randn(8, 2 * WIDTH)[:, ::2],
        lambda: torch.randn(1, WIDTH).expand(8, WIDTH),
        lambda: rows(8).as_subclass(type("Mine", (torch.Tensor,), {})),
        lambda: rows(8).to("meta"),
    ],
)
def test_other_arguments_take_the_reference(
    fast: DropIn, plain: RMSNorm, make: Callable[[], torch.Tensor]
) -> None:
    x = make()
    expected = plain.to(x.device)(x)
    found = fast(x)
    assert (found.shape, found.dtype, found.device) == (
        expected.shape,
        expected.dtype,
        expected.device,
    )
    if not x.is_meta:
        torch.testing.assert_close(found, expected)
    assert (fast.counts.kernel, fast.counts.reference) == (0, {"other arguments": 1})


def test_strides_of_single_elements_do_not_matter() -> None:
    module = RMSNorm()
    fast = replacement_of(module, torch.randn(1, WIDTH), NORM_KERNEL).module(module)
    fast(torch.randn(1, 2 * WIDTH)[:, :WIDTH])
    assert fast.counts.kernel == 1


class MaskedNorm(RMSNorm):
    def forward(  # type: ignore[override]
        self, x: torch.Tensor, mask: torch.Tensor | None = None, shift: float = 0.0
    ) -> torch.Tensor:
        return super().forward(x) + shift


def test_calls_by_name_may_leave_defaults_out() -> None:
    module = MaskedNorm()
    kernel = NORM_KERNEL.replace("def forward(self, x):", "def forward(self, x, mask, shift):")
    fast = replacement_of(module, {"x": rows(), "shift": 0.0}, kernel).module(module)
    x = rows()
    torch.testing.assert_close(fast(x, shift=0.0), module(x))
    torch.testing.assert_close(fast(x, None, 0.0), module(x))
    assert fast.counts.kernel == 2
    torch.testing.assert_close(fast(x, shift=1.0), module(x) + 1)
    assert fast.counts.kernel == 2


def test_wrong_calls_are_the_references_errors(fast: DropIn) -> None:
    for arguments, named in (((), {}), ((rows(), 1), {}), ((), {"z": 1}), (("text",), {})):
        with pytest.raises((TypeError, AttributeError)):
            fast(*arguments, **named)


def test_gradients_are_the_references(fast: DropIn, plain: RMSNorm) -> None:
    x = rows().requires_grad_()
    with torch.enable_grad():
        fast(x).square().sum().backward()
        found, x.grad = x.grad, None
        weight, plain.weight.grad = plain.weight.grad, None
        plain(x).square().sum().backward()
    torch.testing.assert_close(found, x.grad)
    torch.testing.assert_close(weight, plain.weight.grad)
    assert fast.counts.reference == {"gradients": 1}


def test_without_anything_to_differentiate_the_kernel_answers(fast: DropIn) -> None:
    fast.requires_grad_(False)
    with torch.enable_grad():
        assert not fast(rows()).requires_grad
    assert fast.counts.kernel == 1


def test_autocast_and_transforms_take_the_reference(fast: DropIn, plain: RMSNorm) -> None:
    x = rows()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(fast(x), plain(x))
    many = torch.randn(3, 8, WIDTH)
    torch.testing.assert_close(torch.vmap(fast)(many), plain(many))
    gradient = torch.func.grad(lambda x: fast(x).sum())(x)
    torch.testing.assert_close(gradient, torch.func.grad(lambda x: plain(x).sum())(x))
    assert fast.counts.reference == {"autocast": 1, "transformed by torch.func": 2}


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.*:DeprecationWarning")
def test_a_trace_of_torch_jit_holds_the_reference(fast: DropIn, plain: RMSNorm) -> None:
    traced = torch.jit.trace(fast, (rows(),), check_trace=False)
    x = rows()
    torch.testing.assert_close(traced(x), plain(x))
    assert fast.counts.kernel == 0


def test_a_symbolic_trace_holds_the_reference(fast: DropIn, plain: RMSNorm) -> None:
    class Within(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = fast

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x)

    x = rows()
    torch.testing.assert_close(torch.fx.symbolic_trace(Within())(x), plain(x))


def test_threads_have_kernels_of_their_own(fast: DropIn, plain: RMSNorm) -> None:
    wrong: list[str] = []

    def call() -> None:
        with torch.no_grad():
            for _ in range(50):
                x = rows()
                if not torch.allclose(fast(x), plain(x), atol=1e-5):
                    wrong.append("differs")

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert fast.counts.kernel == 100


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_drop_ins(
    fast: DropIn, norm_kernel: Replacement, copied: Callable[[DropIn], DropIn]
) -> None:
    for module in (fast, norm_kernel.module()):
        other = copied(module)
        x = rows()
        torch.testing.assert_close(other(x), module(x))
        assert other.counts.kernel == 1
        other.weight.zero_()
        assert other(x).abs().sum() == 0
        assert module(x).abs().sum() > 0


def test_weights_may_change_in_every_way(fast: DropIn, plain: RMSNorm) -> None:
    x = rows()
    fast(x)
    plain.weight.mul_(2)
    torch.testing.assert_close(fast(x), plain(x))
    fast.load_state_dict({"weight": torch.full((WIDTH,), 3.0)})
    torch.testing.assert_close(fast(x), plain(x))
    fast.weight = torch.nn.Parameter(torch.full((WIDTH,), 4.0))
    torch.testing.assert_close(fast(x), plain(x))
    plain._parameters["weight"] = torch.nn.Parameter(torch.full((WIDTH,), 5.0))
    torch.testing.assert_close(fast(x), plain(x))
    assert fast.counts.kernel == 5


def test_a_module_of_another_type_takes_the_reference(fast: DropIn) -> None:
    fast.double()
    assert fast(rows()).dtype is torch.float64
    fast.float()
    fast(rows())
    refused = "other state: weight is (64,) of torch.float64"
    assert (fast.counts.kernel, fast.counts.reference) == (1, {refused: 1})


def test_a_module_with_other_settings_takes_the_reference(fast: DropIn, plain: RMSNorm) -> None:
    plain.epsilon = fast.epsilon = 10.0
    x = rows()
    torch.testing.assert_close(fast(x), plain(x))
    fast.epsilon = 1e-6
    fast(x)
    assert (fast.counts.kernel, fast.counts.reference) == (1, {"changed settings": 1})


def test_a_module_of_other_sizes_is_refused(norm_kernel: Replacement) -> None:
    with pytest.raises(ValueError, match=r"weight is \(32,\), expected \(64,\)"):
        norm_kernel.module(RMSNorm(32))
    with pytest.raises(TypeError, match=r"expected a torch\.nn\.Module, got str"):
        norm_kernel.module("norm")  # type: ignore[arg-type]


def test_drawing_at_random_is_not_disturbed(norm_kernel: Replacement) -> None:
    torch.manual_seed(1)
    expected = torch.randn(3)
    torch.manual_seed(1)
    norm_kernel.module()
    assert torch.equal(torch.randn(3), expected)


class Frozen(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


FROZEN_KERNEL = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(64)

    def forward(self, x):
        n = self.norm
        return (x - n.running_mean) / (n.running_var + n.eps).sqrt() * n.weight + n.bias
"""


def test_modules_that_depend_on_their_mode_are_answered_in_one_mode() -> None:
    plain = Frozen().eval()
    fast = replacement_of(plain, rows(), FROZEN_KERNEL).module(plain)
    plain.norm.running_mean.normal_()
    x = rows()
    torch.testing.assert_close(fast(x), plain(x))
    fast.norm.train()
    fast(x)
    fast.train()
    fast(x)
    torch.testing.assert_close(fast.eval()(x), plain(x))
    assert fast.counts.kernel == 2
    assert fast.counts.reference == {"inference": 1, "training": 1}


class Masked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.arange(WIDTH) % 2 == 0)
        self.inner = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.mask


MASKED_KERNEL = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        y[:, 1::2] = 0
        return y
"""


def test_a_kernel_may_rely_on_the_values_of_buffers() -> None:
    plain = Masked()
    fast = replacement_of(plain, rows(), MASKED_KERNEL).module(plain)
    x = rows()
    torch.testing.assert_close(fast(x), plain(x))
    plain.mask.logical_not_()
    torch.testing.assert_close(fast(x), plain(x))
    fast.mask = plain.mask.clone()
    torch.testing.assert_close(fast(x), plain(x))
    assert fast.counts.kernel == 1
    assert sum(fast.counts.reference.values()) == 2


def test_parts_that_are_changed_or_watched_take_the_reference() -> None:
    plain = Masked()
    fast = replacement_of(plain, rows(), MASKED_KERNEL).module(plain)
    x = rows()
    plain.inner = torch.nn.SiLU()
    torch.testing.assert_close(fast(x), plain(x))
    plain.inner = torch.nn.ReLU()
    torch.testing.assert_close(fast(x), plain(x))
    hook = plain.inner.register_forward_hook(lambda module, given, found: found + 1)
    torch.testing.assert_close(fast(x), plain(x))
    hook.remove()
    torch.testing.assert_close(fast(x), plain(x))
    assert fast.counts.reference == {"changed settings": 1, "other state: inner has hooks": 1}
    assert fast.counts.kernel == 2


class Parts(NamedTuple):
    whole: torch.Tensor
    rest: Any = None


class Splitting(torch.nn.Module):
    """Returns tuples of a type of its own, and of torch's."""

    def forward(self, x: torch.Tensor) -> Any:
        return Parts(x + 1, (x.max(-1), [x * 2]))


SPLITTING_KERNEL = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + 1, (tuple(x.max(-1)), [x * 2])
"""


def test_named_results_keep_their_names() -> None:
    module = Splitting()
    found = replacement_of(module, rows(), SPLITTING_KERNEL)
    fast, x = found.module(module), rows()
    for result in (fast(x), copy.deepcopy(fast)(x), torch.compile(fast, backend="eager")(x)):
        assert type(result) is Parts
        largest, twice = result.rest
        assert type(largest) is torch.return_types.max
        torch.testing.assert_close(largest.values, x.max(-1).values)
        torch.testing.assert_close((result.whole, *twice), (x + 1, x * 2))
    assert (fast.counts.kernel, fast.counts.reference) == (1, {})


class Looking(Splitting):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) if x.sum().item() < 1e9 else None


def test_results_whose_type_depends_on_values_are_the_references() -> None:
    module, x = Looking(), rows()
    fast = replacement_of(Splitting(), rows(), SPLITTING_KERNEL).module(module)
    assert type(fast(x)) is Parts
    assert fast.counts.reference == {"results of an unknown type": 1}
