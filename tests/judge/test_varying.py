"""Variants of inputs: what each of them changes, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.evaluation.judge.inputs.varying import vary
from kernel_smith.evaluation.sandbox.tree import flatten
from kernel_smith.records import Variant


def input_set(*arguments: Any) -> InputSet:
    tensors: list[torch.Tensor] = []
    return InputSet(flatten(list(arguments), tensors), tensors)


@pytest.mark.parametrize("variant", Variant)
def test_variants_keep_shape_dtype_nesting_and_integers(variant: Variant) -> None:
    shapes = [(8, 33), (5,), (), (0, 3), (2, 1)]
    floats = [torch.randn(shape) for shape in shapes]
    whole, mask = torch.randint(9, (4, 6)), torch.rand(4, 6) > 0.5
    inputs = input_set(floats, {"indices": whole, "mask": mask}, 3.5, None)
    before = [t.clone() for t in inputs.tensors]
    varied = vary(inputs, variant, seed=1)
    assert varied.label == variant.value
    assert varied.template == inputs.template
    assert [(t.shape, t.dtype) for t in varied.tensors] == [(t.shape, t.dtype) for t in before]
    assert torch.equal(varied.tensors[-2], whole)
    assert torch.equal(varied.tensors[-1], mask)
    assert all(map(torch.equal, inputs.tensors, before)), "the author's inputs stay as they are"


@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_variants_apply_to_every_dtype_and_layout(variant: Variant, dtype: torch.dtype) -> None:
    transposed = torch.randn(6, 8).to(dtype).t()
    (varied,) = vary(input_set(transposed), variant, seed=1).tensors
    assert varied.dtype == dtype
    assert varied.shape == (8, 6)
    if variant not in (Variant.STRIDED, Variant.EQUAL):
        assert not torch.equal(varied, transposed)


def varied(tensor: torch.Tensor, variant: Variant, seed: int = 1) -> torch.Tensor:
    return vary(input_set(tensor), variant, seed).tensors[0]


def test_large_and_small_scale_by_a_thousand() -> None:
    x = torch.randn(100)
    assert torch.allclose(varied(x, Variant.LARGE), x * 1e3)
    assert torch.allclose(varied(x, Variant.SMALL), x * 1e-3)


def test_spikes_enlarge_a_few_elements_chosen_by_the_seed() -> None:
    x = torch.randn(40, 1000)
    spiked = varied(x, Variant.SPIKES)
    changed = spiked != x
    assert 40000 // 256 - 9 < int(changed.sum()) <= 40000 // 256
    assert int(changed.sum(-1).max()) > 1, "some rows have several"
    assert 1 <= int((varied(x[:4, :25], Variant.SPIKES) != x[:4, :25]).sum()) <= 8
    assert torch.allclose(spiked[changed], x[changed] * 1e3)
    assert not torch.equal(varied(x, Variant.SPIKES, seed=2), spiked)


def test_sorted_sorts_the_last_dimension() -> None:
    x = torch.randn(5, 50)
    assert torch.equal(varied(x, Variant.SORTED), x.sort(-1).values)


def test_ties_leave_few_distinct_values_and_little_error() -> None:
    x = torch.randn(1000)
    tied = varied(x, Variant.TIES)
    assert len(tied.unique()) <= 9
    assert float((tied - x).abs().max()) <= float(x.abs().max()) / 8 * 1.0001
    assert torch.equal(varied(torch.zeros(5), Variant.TIES), torch.zeros(5))


def test_strided_changes_the_layout_and_nothing_else() -> None:
    for x in (torch.randn(4, 6), torch.arange(5)):
        strided = varied(x, Variant.STRIDED)
        assert torch.equal(strided, x)
        assert not strided.is_contiguous()
    scalar = torch.tensor(2.0)
    assert torch.equal(varied(scalar, Variant.STRIDED), scalar)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_huge_and_tiny_use_the_range_that_a_dtype_has(dtype: torch.dtype) -> None:
    x = torch.randn(1000).clamp(-4, 4).to(dtype)
    huge, tiny = varied(x, Variant.HUGE), varied(x, Variant.TINY)
    assert huge.isfinite().all() and tiny.count_nonzero() > 900
    if dtype is not torch.float16:
        assert float(huge.abs().max()) > torch.finfo(torch.float16).max
        assert float(tiny.abs().max()) < 1e-5


@pytest.mark.parametrize(
    ("variant", "low", "high"), [(Variant.SHIFTED, 900, 1200), (Variant.UNEVEN, 15, 800)]
)
def test_shifted_is_far_from_zero_and_varies_as_before(
    variant: Variant, low: float, high: float
) -> None:
    x = torch.randn(64, 4096)
    shifted = varied(x, variant)
    offsets = (shifted - x).mean(-1)
    assert (offsets.abs() > low).all() and (offsets.abs() < high).all()
    assert torch.allclose(shifted - offsets[:, None], x, atol=1e-3)
    assert (float((offsets - offsets[0]).abs().max()) > 1) == (variant is Variant.UNEVEN)


def test_how_far_rows_lie_apart_is_not_known() -> None:
    x = torch.randn(64, 256)
    far = [
        float(vary(input_set(x), Variant.UNEVEN, seed).tensors[0].abs().max()) for seed in range(64)
    ]
    for threshold in (100, 200, 400):
        assert min(far) < threshold < max(far)


def test_a_shift_leaves_half_precision_some_digits() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(4, 512).to(dtype)
        shifted = varied(x, Variant.UNEVEN)
        assert (shifted.float().mean(-1).abs() > 15).all()
        assert (shifted.float().std(-1) > 0.5).all()
        assert len(shifted[0].unique()) > 4


def test_free_integers_can_be_equal_everywhere() -> None:
    free, bound = torch.randint(99, (30,)), torch.arange(30)
    inputs = input_set(free, bound, torch.randn(30))
    equal = vary(inputs, Variant.EQUAL, seed=1, free_integers=[True, False, False]).tensors
    assert len(equal[0].unique()) == 1 and equal[0][0] in free
    assert torch.equal(equal[1], bound) and torch.equal(equal[2], inputs.tensors[2])


@pytest.mark.parametrize("sign", [1, -1])
def test_uneven_divisors_keep_their_sign(sign: int) -> None:
    """No program needs to expect a temperature below zero where all that its author drew are above
    it; what is drawn between zero and one may be anything."""
    temperatures = sign * (torch.rand(64, 1) + 0.5)
    assert all((sign * varied(temperatures, Variant.UNEVEN, seed) > 0).all() for seed in range(8))
    fractions = torch.rand(64, 100)
    assert any((varied(fractions, Variant.UNEVEN, seed) < 0).any() for seed in range(8))
