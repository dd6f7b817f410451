"""Large tensors, piece by piece: nothing is left out, nothing comes twice."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.values import pieces as module
from kernel_smith.evaluation.judge.values.pieces import digest, pieces, same_bits

SHAPES = st.lists(st.integers(1, 9), min_size=0, max_size=4).map(tuple)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._PIECE, "cpu", 16)
    monkeypatch.setattr(module, "_COARSE", 2)


@given(SHAPES, st.booleans(), st.booleans())
def test_every_element_comes_once_and_in_order(
    shape: tuple[int, ...], transposed: bool, coarsely: bool
) -> None:
    tensor = torch.arange(torch.Size(shape).numel()).view(shape)
    tensor = tensor.mT.contiguous().mT if transposed and tensor.dim() > 1 else tensor
    seen = list(pieces(tensor, tensor + 1, coarsely=coarsely))
    parts = [left.flatten() for _, (left, _) in seen]
    assert torch.equal(torch.cat(parts), torch.arange(tensor.numel()))
    assert all(offset == int(left.flatten()[0]) for offset, (left, _) in seen)
    assert all(torch.equal(right, left + 1) for _, (left, right) in seen)
    assert all(left.numel() <= 16 * (2 if coarsely else 1) for _, (left, _) in seen)


def test_a_tensor_without_elements_is_one_piece() -> None:
    (piece,) = pieces(torch.empty(0, 5))
    assert piece[0] == 0 and piece[1][0].shape == (0, 5)


@settings(deadline=None)
@given(st.data())
def test_one_changed_element_anywhere_is_seen(data: st.DataObject) -> None:
    shape = data.draw(SHAPES.filter(lambda s: len(s) > 0))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float16, torch.int8, torch.int64]))
    tensor = torch.randint(-9, 9, shape).to(dtype)
    other = tensor.clone()
    place = data.draw(st.integers(0, tensor.numel() - 1))
    assert same_bits(tensor, other) and digest(tensor) == digest(other)
    other.view(-1)[place] += 1
    assert not same_bits(tensor, other)
    assert digest(tensor) != digest(other)


def test_nan_equals_itself_but_not_another_nan() -> None:
    nan = torch.full((40,), torch.nan)
    assert same_bits(nan, nan.clone())
    other = nan.clone()
    other.view(torch.int32)[39] += 1
    assert not same_bits(nan, other)


def test_elements_that_change_places_change_the_digest() -> None:
    tensor = torch.randn(1000)
    for _ in range(20):
        left, right = torch.randperm(1000)[:2]
        other = tensor.clone()
        other[left], other[right] = tensor[right], tensor[left]
        assert digest(other) != digest(tensor)


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64, torch.bfloat16, torch.float64])
def test_every_type_has_a_digest(dtype: torch.dtype) -> None:
    tensor = torch.ones(3, 7).to(dtype)
    assert digest(tensor) == digest(tensor.clone()) != digest(torch.zeros_like(tensor))
