"""A seed's result against the reference's, block by block: no element is overlooked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_smith.proposers.seed.inside import comparison
from kernel_smith.proposers.seed.inside.comparison import (
    Tally,
    block_indices,
    compare,
    difference,
    keep_all,
    keep_sample,
)

BLOCK = 16
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn)
EXACT = (torch.int64, torch.int8, torch.uint8, torch.bool)

shapes = st.one_of(
    st.lists(st.integers(0, 7), max_size=4),
    st.sampled_from([[BLOCK - 1], [BLOCK], [BLOCK + 1], [2 * BLOCK], [3, BLOCK + 1], [BLOCK, 3]]),
)


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "_BLOCK_ELEMENTS", BLOCK)
        patch.setattr(comparison, "_SAMPLE_BLOCK_ELEMENTS", 4)
        patch.setattr(comparison, "_SAMPLE_BLOCKS", 3)
        yield


def values(shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Numbers of about the same size, so that the allowed error is far below them."""
    counted = torch.arange(math.prod(shape)).reshape(shape)
    if dtype is torch.bool:
        return counted % 2 == 0
    return (counted % 3 + 1).to(dtype)


def other_layout(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, with the strides of a transposed tensor."""
    return tensor.mT.contiguous().mT if tensor.dim() >= 2 else tensor


@given(shape=shapes, limit=st.integers(1, 40))
def test_blocks_cover_every_element_once(shape: list[int], limit: int) -> None:
    seen = torch.zeros(shape, dtype=torch.int64)
    for index in block_indices(shape, limit):
        assert seen[index].numel() <= limit
        seen[index] += 1
    assert (seen == 1).all()


@given(shape=shapes, dtype=st.sampled_from(FLOATS + EXACT), data=st.data())
def test_a_single_wrong_element_is_found_wherever_it_is(
    shape: list[int], dtype: torch.dtype, data: st.DataObject
) -> None:
    expected = values(shape, dtype)
    size = expected.numel()
    assert compare(expected.clone(), keep_all(expected)) == Tally(size, 0, 0)
    if not size:
        return
    actual = expected.clone()
    place = data.draw(st.integers(0, size - 1))
    wrong: Any = 0 if dtype is not torch.bool else not actual.reshape(-1)[place]
    if dtype in FLOATS[:-1]:
        wrong = data.draw(st.sampled_from([0.0, -1.0, math.inf, -math.inf, math.nan]))
    actual.view(-1)[place] = wrong
    lone_nan = int(wrong != wrong)
    assert compare(other_layout(actual), keep_all(expected)) == Tally(size, 1, lone_nan)
    assert compare(actual, keep_all(other_layout(expected))) == Tally(size, 1, lone_nan)


@given(shape=shapes, dtype=st.sampled_from(FLOATS[:-1]), data=st.data())
def test_what_is_not_finite_must_be_the_same(
    shape: list[int], dtype: torch.dtype, data: st.DataObject
) -> None:
    expected = values(shape, dtype)
    if not expected.numel():
        return
    place = data.draw(st.integers(0, expected.numel() - 1))
    odd = [math.inf, -math.inf, math.nan]
    expected.view(-1)[place] = data.draw(st.sampled_from(odd))
    assert compare(expected.clone(), keep_all(expected)).wrong == 0
    actual = expected.clone()
    changed = [value for value in (*odd, 1.0) if value != expected.view(-1)[place].item()]
    if expected.isnan().any():
        changed.remove(changed[-2])  # another NaN is no change
    actual.view(-1)[place] = data.draw(st.sampled_from(changed))
    assert compare(actual, keep_all(expected)).wrong == 1


@given(position=st.integers(0, 2), place=st.integers(0, 3 * BLOCK))
def test_in_a_tuple_the_wrong_part_is_named(position: int, place: int) -> None:
    expected = [values([3 * BLOCK + 1], dtype) for dtype in (torch.float32, torch.int64)]
    expected.append(values([3 * BLOCK + 1], torch.float16))
    actual = [part.clone() for part in expected]
    assert difference(tuple(actual), tuple(expected)) is None
    actual[position][place] = 100
    said = difference(tuple(actual), tuple(expected))
    assert said is not None and said.startswith(f"output {position} ")


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        (torch.ones(3), [torch.ones(3)], "it returns"),
        ([torch.ones(3)], [torch.ones(4)], "output 0 is torch.float32 (3,)"),
        ([torch.ones(3).half()], [torch.ones(3)], "output 0 is torch.float16 (3,)"),
        ([1.0, 2], [torch.ones(()), 2], "output 0 is 1.0, not a tensor"),
        ([torch.ones(()), 3], [torch.ones(()), 2], "output 1 is 3, not 2"),
        ([torch.ones(2) * math.nan], [torch.ones(2)], "has NaN in other places"),
        ([torch.ones(2) * 2], [torch.ones(2)], "is off in 100.0%"),
    ],
)
def test_what_is_wrong_is_said(actual: Any, expected: Any, said: str) -> None:
    assert said in str(difference(actual, expected))
    assert difference(expected, expected) is None


@given(size=st.integers(0, 100))
def test_a_sample_has_both_ends_and_its_own_memory(size: int) -> None:
    tensor = torch.arange(float(size))
    kept = keep_sample(tensor)
    assert kept.compared == (size if size <= 12 else 8 + len(kept.blocks[-1][1]))
    tensor.add_(1000)
    found = list(itertools.chain.from_iterable(block.tolist() for _, block in kept.blocks))
    assert len(set(found)) == len(found) and max(found, default=0) < 1000
    if size:
        assert {0, size - 1} <= set(found)
        assert difference(tensor, kept) is not None
    assert difference(torch.arange(float(size)), kept) is None


class Largest(TorchDispatchMode):
    """Notes the most elements that any new tensor has."""

    def __init__(self, *known: torch.Tensor) -> None:
        super().__init__()
        self._known = {tensor.data_ptr() for tensor in known}
        self.elements = 0

    def __torch_dispatch__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(made):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if storage.data_ptr() not in self._known:
                    self.elements = max(self.elements, storage.nbytes() // leaf.element_size())
        return made


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
def test_nothing_of_the_size_of_a_result_is_made(dtype: torch.dtype) -> None:
    expected = values([40, 50], dtype)
    actual = other_layout(expected)
    with Largest(expected, actual) as largest:
        assert difference(actual, expected) is None
    assert BLOCK <= largest.elements < expected.numel() / 4


NEW_NORM = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.GroupNorm(2, 6)
        self.steps = torch.nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False)

    def forward(self, x):
        return self.norm(x).mean((1, 2, 3))


def get_inputs():
    return [torch.randn(5, 6, 7, 9)]
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_result_that_a_new_norm_makes_zero_can_be_compared(compiler: None, write_task) -> None:
    """Zero but for rounding, as long as the norm adds none."""
    from kernel_smith.proposers.seed.inside.build import build_seed

    seed = build_seed(write_task(NEW_NORM), "cpu", ["default"], lambda what: None)
    assert seed.compared == {"default": 1.0}
