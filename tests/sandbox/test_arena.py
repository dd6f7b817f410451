"""Shared memory for tensors: aligned, disjoint, of a fixed size, and seen by both sides."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.sandbox.arena import (
    Arena,
    Layout,
    Slot,
    contiguous_stride,
    dtype_name,
    extent_bytes,
    resolve_dtype,
)

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.int8,
    torch.uint8,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]

shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
dtypes = st.sampled_from(DTYPES)


@pytest.fixture
def create() -> Iterator[Callable[[int], Arena]]:
    arenas: list[Arena] = []

    def make(size: int) -> Arena:
        arenas.append(Arena.create(size))
        return arenas[-1]

    yield make
    for arena in arenas:
        arena.close()


@st.composite
def strided_tensors(draw: st.DrawFn) -> torch.Tensor:
    """Tensors with permuted dimensions and gaps between their elements."""
    shape = draw(st.lists(st.integers(1, 4), max_size=3))
    steps = [draw(st.integers(1, 3)) for _ in shape]
    wide = torch.arange(
        int(torch.tensor([a * b for a, b in zip(shape, steps, strict=True)]).prod())
    ).float()
    wide = wide.reshape([a * b for a, b in zip(shape, steps, strict=True)])
    view = wide[tuple(slice(None, None, step) for step in steps)]
    return view.permute(draw(st.permutations(range(len(shape)))))


@given(st.lists(st.tuples(shapes, dtypes), min_size=1, max_size=12))
def test_slots_are_aligned_and_disjoint_and_within_the_size(
    tensors: list[tuple[tuple[int, ...], torch.dtype]],
) -> None:
    layout = Layout()
    end = 0
    for shape, dtype in tensors:
        slot = layout.place(shape, contiguous_stride(shape), dtype)
        assert slot.offset % 256 == 0
        assert slot.offset >= end
        end = slot.offset + max(slot.nbytes, 1)
    assert end <= layout.size


@given(shapes)
def test_contiguous_stride_is_the_one_of_a_new_tensor(shape: tuple[int, ...]) -> None:
    assert contiguous_stride(shape) == torch.empty(shape).stride()


@given(strided_tensors())
def test_extent_reaches_exactly_the_last_element(tensor: torch.Tensor) -> None:
    size = extent_bytes(tensor.shape, tensor.stride(), tensor.dtype)
    storage = torch.zeros(size // 4).as_strided(tensor.shape, tensor.stride())
    assert storage.shape == tensor.shape
    with pytest.raises(RuntimeError, match="out of bounds"):
        torch.zeros(size // 4 - 1).as_strided(tensor.shape, tensor.stride())


@given(st.lists(strided_tensors(), min_size=1, max_size=4))
def test_views_hold_what_was_written_to_each_of_them(tensors: list[torch.Tensor]) -> None:
    layout = Layout()
    slots = [layout.like(tensor) for tensor in tensors]
    arena = Arena.create(layout.size)
    for slot, tensor in zip(slots, tensors, strict=True):
        arena.view(slot).copy_(tensor)
    for slot, tensor in zip(slots, tensors, strict=True):
        view = arena.view(slot)
        assert torch.equal(view, tensor)
        assert view.stride() == tensor.stride()
    arena.close()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_can_be_shared(create: Callable[[int], Arena], dtype: torch.dtype) -> None:
    layout = Layout()
    layout.place((3,), (1,), torch.uint8)
    slot = Slot.from_json(layout.place((2, 3), (3, 1), dtype).to_json())
    view = create(layout.size).view(slot)
    values = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    view.copy_(values)
    assert view.dtype == dtype
    assert torch.equal(view.view(torch.uint8), values.view(torch.uint8))
    assert resolve_dtype(dtype_name(dtype)) == dtype


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_scalars_and_empty_tensors_have_views(
    create: Callable[[int], Arena], shape: tuple[int, ...]
) -> None:
    layout = Layout()
    slot = layout.place(shape, contiguous_stride(shape), torch.float32)
    view = create(layout.size).view(slot)
    assert view.shape == shape
    assert view.fill_(3).eq(3).all()


def test_both_mappings_see_the_same_memory(create: Callable[[int], Arena]) -> None:
    layout = Layout()
    slot = layout.place((4,), (1,), torch.float32)
    judge = create(layout.size)
    child = Arena.open(judge.fd, judge.size)
    judge.view(slot).copy_(torch.arange(4))
    assert child.view(slot).tolist() == [0, 1, 2, 3]
    child.view(slot)[2] = 7
    assert judge.view(slot).tolist() == [0, 1, 7, 3]


@pytest.mark.parametrize("change", [-1, 1])
def test_a_child_can_change_neither_the_size_nor_the_seals(
    create: Callable[[int], Arena], change: int
) -> None:
    """A judge whose arena shrank would die of SIGBUS when it reads."""
    arena = create(3 * mmap.PAGESIZE)
    with pytest.raises(PermissionError):
        os.ftruncate(arena.fd, arena.size + change * mmap.PAGESIZE)
    assert os.fstat(arena.fd).st_size == arena.size


@given(st.integers(1, 6), shapes, dtypes)
def test_rows_equal_the_views(count: int, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    layout = Layout()
    layout.place((5,), (1,), torch.float32)
    slots = [layout.place(shape, contiguous_stride(shape), dtype) for _ in range(count)]
    arena = Arena.create(layout.size)
    arena.raw(0, layout.size).random_(0, 2)
    step = slots[1].offset - slots[0].offset if count > 1 else 0
    rows = arena.rows(slots[0], count, step)
    assert rows.shape[0] == count
    for row, slot in zip(rows, slots, strict=True):
        view = arena.view(slot)
        assert row.shape == (view.numel(),)
        if view.numel():
            assert row.data_ptr() == view.data_ptr()
            assert torch.equal(row.view(torch.uint8), view.flatten().view(torch.uint8))
    arena.close()


def test_contains_tells_own_addresses_from_others(create: Callable[[int], Arena]) -> None:
    layout = Layout()
    slots = [layout.place((100,), (1,), torch.float32) for _ in range(50)]
    arena = create(layout.size)
    assert all(arena.contains(arena.view(slot).data_ptr()) for slot in slots)
    assert not arena.contains(torch.empty(100).data_ptr())
    start = arena.view(slots[0]).data_ptr()
    assert not arena.contains(start - 1)
    assert not arena.contains(start + arena.size)


def test_views_outlive_the_descriptor(create: Callable[[int], Arena]) -> None:
    layout = Layout()
    slot = layout.place((4,), (1,), torch.float32)
    arena = create(layout.size)
    view = arena.view(slot)
    arena.close()
    arena.close()
    assert view.fill_(2).sum() == 8
