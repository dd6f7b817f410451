"""Rewrites of a graph: each computes the same, in real arithmetic, or leaves the graph alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from kernel_smith.proposers.seed import find_recipe, make_seed
from kernel_smith.proposers.seed.inside.rewrites import applicable, rewrite_graph
from kernel_smith.proposers.seed.inside.rewrites.apply import RULES
from kernel_smith.records import Task

SINGLE, SUMS, CONVOLVED, DIAGONAL, ORDER, POOLS, POOLED = RULES
Forward = Callable[..., Any]


class Written(nn.Module):
    """A layer, a vector, and a function of both and the inputs."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(6, 5)
        self.vector = nn.Parameter(torch.randn(5))
        self._forward = forward
        self.double()

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._forward(self, *inputs)


def rewritten(forward: Forward, *inputs: torch.Tensor) -> tuple[str, ...]:
    """The rules that were used; what comes of them must be the same."""
    model = Written(forward)
    given_inputs = tuple(each.double() for each in inputs)
    program = torch.export.export(model, given_inputs, strict=False)
    before = str(program.graph_module.code)
    promised = applicable(program.graph_module)
    assert str(program.graph_module.code) == before, "to look is to change nothing"
    used = rewrite_graph(program.graph_module)
    assert used == promised
    found, expected = program.module()(*given_inputs), model(*given_inputs)
    torch.testing.assert_close(found, expected)
    return used


X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
DEEP = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    "forward",
    [
        lambda model, x: model.linear(x).sum(1, keepdim=True),
        lambda model, x: model.linear(x).mean(-1),
        lambda model, x: (model.linear(x) / 2 - model.vector).sum(1) * 1.5,
        lambda model, x: (model.linear(x) * 3 + 2).mean(1, keepdim=True),
        lambda model, x: (model.linear(x) * model.vector.max() + model.vector.min()).sum(1),
        lambda model, x: (x @ model.linear.weight.T).sum(1),
        lambda model, x: (model.linear(x) - model.vector[:1]).sum(1),
        lambda model, x: F.dropout(model.linear(x), 0.5, training=False).sum(1),
        lambda model, x: model.linear(x).mean(0),
        lambda model, x: model.linear(x).sum(0, keepdim=True),
    ],
)
def test_sums_through_products(forward: Forward) -> None:
    assert rewritten(forward, X) == (SUMS,)


def test_means_of_a_batch_before_they_are_mapped() -> None:
    assert rewritten(lambda model, x: model.linear(x).mean(1), DEEP) == (SUMS,)
    assert rewritten(lambda model, x: model.linear(x).sum((0, 1)), DEEP) == (SUMS,)


@pytest.mark.parametrize(
    "forward",
    [
        lambda model, x: torch.relu(model.linear(x)).sum(1),
        lambda model, x: (lambda y: (y.sum(1), y))(model.linear(x)),
        lambda model, x: (model.linear(x) + x[:, :5]).sum(1),
        lambda model, x: (model.linear(x) + x[:, :1]).sum(1),
        lambda model, x: torch.add(model.linear(x), model.vector, alpha=2).sum(1),
        lambda model, x: model.linear(x).sum(1, dtype=torch.float32),
        lambda model, x: (model.linear(x) * model.vector).sum(1),
        lambda model, x: (model.linear(x[:1]) + torch.zeros(4, 5, dtype=x.dtype)).sum(1),
    ],
)
def test_what_is_not_linear_or_needed_otherwise_stays(forward: Forward) -> None:
    assert rewritten(forward, X) == ()


@pytest.mark.parametrize(
    "reduce",
    [
        lambda y: y.max(1, keepdim=True)[0],
        lambda y: y.min(dim=1).values,
        lambda y: y.mean(1),
        lambda y: torch.logsumexp(y, 1, keepdim=True),
        lambda y: torch.amax(y, (1,)),
    ],
)
def test_one_element_is_its_own_reduction(reduce: Forward) -> None:
    assert rewritten(lambda model, x: reduce(torch.tanh(x[:, :1])) * 2, X) == (SINGLE,)
    assert rewritten(lambda model, x: reduce(torch.tanh(x)) * 2, X) == ()


def test_a_maximum_whose_place_is_asked_for_stays() -> None:
    assert rewritten(lambda model, x: torch.tanh(x[:, :1]).max(1)[1], X) == ()


def test_rules_open_the_way_to_one_another() -> None:
    def forward(model: Any, x: torch.Tensor) -> torch.Tensor:
        y = model.linear(x).sum(1, keepdim=True).max(1, keepdim=True)[0]
        return torch.logsumexp(y.mean(1, keepdim=True), 1, keepdim=True)

    assert rewritten(forward, X) == (SINGLE, SUMS)


def test_diagonals_scale() -> None:
    square, row = torch.randn(6, 6), torch.randn(6)
    assert rewritten(lambda _, a, b: torch.diag(a) @ b, row, square) == (DIAGONAL,)
    assert rewritten(lambda _, a, b: b @ torch.diag(a), row, square) == (DIAGONAL,)
    assert rewritten(lambda _, a, b: torch.diag_embed(a) @ b, row, square) == (DIAGONAL,)
    assert rewritten(lambda _, a, b: torch.diag(a, 1)[:6, :6] @ b, row, square) == ()


def test_three_matrices_in_the_cheaper_order() -> None:
    a, b, thin = torch.randn(20, 20), torch.randn(20, 20), torch.randn(20, 2)
    assert rewritten(lambda _, a, b, c: (a @ b) @ c, a, b, thin) == (ORDER,)
    assert rewritten(lambda _, a, b, c: c.T @ (a @ b), a, b, thin) == (ORDER,)
    assert rewritten(lambda _, a, b, c: a @ (b @ c), a, b, thin) == ()
    assert rewritten(lambda _, a, b, c: (lambda y: (y, y @ c))(a @ b), a, b, thin) == ()


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Any, ...]:
    """One or two dimensions, transposed or not, and which of them are added up."""
    dimensions = draw(st.integers(1, 2))
    window, step, gap = (draw(st.integers(1, 3)) for _ in range(3))
    padding = draw(st.integers(0, (window - 1) * gap))
    more = draw(st.integers(0, step - 1))
    taken = draw(st.sampled_from([(2,), (3,), (2, 3)])) if dimensions == 2 else (2,)
    return dimensions, draw(st.booleans()), window, step, gap, padding, more, taken


@settings(max_examples=12)
@given(convolutions(), st.booleans(), st.booleans())
def test_sums_before_convolutions(case: tuple[Any, ...], keep: bool, mean: bool) -> None:
    dimensions, transposed, window, step, gap, padding, more, taken = case
    image = torch.randn(2, 3, *(14, 15)[:dimensions])
    weight = torch.randn(3, 4, *[window] * dimensions)
    names = {False: ("conv1d", "conv2d"), True: ("conv_transpose1d", "conv_transpose2d")}
    convolve = getattr(F, names[transposed][dimensions - 1])
    how = {"stride": step, "padding": padding, "dilation": gap}
    how |= {"output_padding": more} if transposed else {}

    def forward(model: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = convolve(x, w if transposed else w.transpose(0, 1), model.vector[:4], **how) * 3
        return (y.mean if mean else y.sum)(taken, keepdim=keep)

    plain = weight if transposed else weight.transpose(0, 1)
    shape = convolve(image, plain, **how).shape
    fewer = math.prod(shape[axis] for axis in taken) > window ** len(taken)
    assert rewritten(forward, image, weight) == ((CONVOLVED,) if fewer else ())


def test_a_volume_becomes_an_image() -> None:
    def forward(_: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv_transpose3d(x, w, stride=2, padding=1).mean(2, keepdim=True)

    assert rewritten(forward, torch.randn(2, 3, 6, 5, 4), torch.randn(3, 4, 3, 3, 3)) == (
        CONVOLVED,
    )


def test_groups_and_sums_over_channels_stay() -> None:
    image, weight = torch.randn(2, 4, 9, 9), torch.randn(4, 2, 3, 3)
    assert rewritten(lambda _, x, w: F.conv2d(x, w, groups=2).mean((2, 3)), image, weight) == ()
    weight = torch.randn(4, 4, 3, 3)
    assert rewritten(lambda _, x, w: F.conv2d(x, w).mean((1, 2, 3)), image, weight) == ()
    assert rewritten(lambda _, x, w: F.conv2d(x, w).relu().mean((2, 3)), image, weight) == ()


@settings(max_examples=12)
@given(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(14, 19)
)
def test_pools_of_pools(window: int, step: int, more: int, further: int, length: int) -> None:
    """Where the first leaves nothing out between its windows, and else not at all."""
    image = torch.randn(1, 2, length, length + 1)
    whole = step <= window
    assert rewritten(
        lambda _, x: F.max_pool2d(F.max_pool2d(x, window, step), more, further), image
    ) == ((POOLS,) if whole else ())


def test_pools_of_means_padding_and_gaps() -> None:
    image = torch.randn(1, 2, 17, 16)
    assert rewritten(lambda _, x: F.avg_pool2d(F.avg_pool2d(x, 2), 2), image) == (POOLS,)
    assert rewritten(lambda _, x: F.avg_pool2d(F.avg_pool2d(x, 3, 2), 2), image) == ()
    assert rewritten(lambda _, x: F.max_pool2d(F.max_pool2d(x, 3, 1, 1), 2), image) == ()
    assert rewritten(lambda _, x: F.max_pool2d(F.max_pool2d(x, 2, dilation=2), 2), image) == ()
    assert rewritten(lambda _, x: F.max_pool2d(F.max_pool2d(x, 2, ceil_mode=True), 2), image) == ()
    volume = torch.randn(1, 1, 8, 8, 9)
    assert rewritten(lambda _, x: F.max_pool3d(F.max_pool3d(x, 2), 2), volume) == (POOLS,)


@settings(max_examples=12)
@given(
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(2, 3),
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
)
def test_averages_within_convolutions(
    dimensions: int, window: int, step: int, mean: int, padding: int, more: int, transposed: bool
) -> None:
    """Where steps fit, or windows overlap, and else not at all."""
    padding, more = min(padding, window - 1), min(more, step - 1)
    image = torch.randn(2, 3, *(13, 14)[:dimensions])
    weight = torch.randn(3, 4, *[window] * dimensions)
    pool = (F.avg_pool1d, F.avg_pool2d)[dimensions - 1]

    def forward(model: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        if transposed:
            convolve = (F.conv_transpose1d, F.conv_transpose2d)[dimensions - 1]
            y = convolve(x, w, model.vector[:4], step, padding, output_padding=more)
        else:
            convolve = (F.conv1d, F.conv2d)[dimensions - 1]
            y = convolve(x, w.transpose(0, 1), model.vector[:4], step, padding)
        return pool(y * 0.5, mean)

    pointwise = window == step == 1 and padding == 0
    fits = mean == step if transposed else pointwise or step < window
    assert rewritten(forward, image, weight) == ((POOLED,) if fits else ())


def test_a_mean_of_a_volume_within_its_convolution() -> None:
    def forward(model: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = F.conv_transpose3d(x, w, stride=2, padding=1) * model.vector.max()
        return F.avg_pool3d(y, 2) + model.vector[:1]

    volume, weight = torch.randn(2, 3, 5, 4, 6), torch.randn(3, 4, 3, 3, 3)
    assert rewritten(forward, volume, weight) == (POOLED,)


def test_the_recipe_serves_every_device() -> None:
    assert find_recipe("rewritten").anywhere and not find_recipe("tuned").anywhere


POOLED_TASK = """
import torch

TASK = {"workloads": {"default": {}}}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1)

    def forward(self, x):
        return self.convolution(x).mean((2, 3))


def get_inputs():
    return [torch.randn(2, 3, 9, 8)]
"""


@pytest.mark.slow
def test_a_seed_of_what_is_left(write_task: Callable[[str], Task]) -> None:
    """Sums for each place of a window are parts of one whole, which kernels are to take."""
    made = make_seed(write_task(POOLED_TASK), "cpu", recipe=find_recipe("rewritten"))
    assert made.rewrites == (CONVOLVED,) and made.library_calls == ()
    assert made.compared == {"default": 1.0}
