"""Mixtures of two input sets: one at a time or in blocks, bit for bit the same."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.inputs.integers import free_integers
from kernel_smith.evaluation.judge.inputs.mixing import BlockMixer, Mixer
from kernel_smith.evaluation.judge.inputs.reference import InputSet

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn)
INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool)
POOL = 5

shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**31)
mixtures = st.lists(
    st.tuples(st.integers(0, POOL - 1), st.integers(0, POOL - 1), st.integers(0, 4095)),
    min_size=1,
    max_size=9,
)


def draw(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).mul_(40).to(dtype)


def pool_of(shape: tuple[int, ...], dtypes: tuple[torch.dtype, ...], seed: int) -> list[InputSet]:
    return [
        InputSet(["x"], [draw(shape, dtype, seed + POOL * k + i) for k, dtype in enumerate(dtypes)])
        for i in range(POOL)
    ]


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().view(torch.uint8).flatten().tolist()


@given(shape=shapes, dtypes=st.permutations(FLOATS + INTEGERS), seed=seeds, wanted=mixtures)
def test_blocks_are_mixed_as_one_at_a_time(
    shape: tuple[int, ...],
    dtypes: list[torch.dtype],
    seed: int,
    wanted: list[tuple[int, int, int]],
) -> None:
    pool = pool_of(shape, tuple(dtypes[:4]), seed)
    mixer = Mixer(pool)
    in_blocks = BlockMixer(mixer, pool).mix(wanted)
    singly = [mixer.mix(pool[left], pool[right], shift) for left, right, shift in wanted]
    assert len(in_blocks) == len(wanted)
    for ours, theirs in zip(in_blocks, singly, strict=True):
        assert ours.template == theirs.template
        for mine, other in zip(ours.tensors, theirs.tensors, strict=True):
            assert (mine.dtype, mine.shape, mine.stride()) == (
                other.dtype,
                other.shape,
                other.stride(),
            )
            assert bits(mine) == bits(other)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_each_element_comes_whole_from_one_of_both_and_both_give_some(dtype: torch.dtype) -> None:
    pool = [InputSet([], [torch.full((16, 16), value).to(dtype)]) for value in (1.75, -3.25)]
    mixed = BlockMixer(Mixer(pool), pool).mix([(0, 1, 5), (1, 0, 5), (0, 1, 6)])
    kept = [inputs.tensors[0].float() == 1.75 for inputs in mixed]
    for inputs, first in zip(mixed, kept, strict=True):
        assert ((inputs.tensors[0].float() == -3.25) | first).all()
        assert 0 < int(first.sum()) < first.numel()
    assert torch.equal(kept[0], ~kept[1])
    assert not torch.equal(kept[0], kept[2])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_free_integers_are_as_new_as_numbers(dtype: torch.dtype) -> None:
    pool = [
        InputSet([], [torch.randn(8, 8), torch.randint(2, (8, 8)).to(dtype)]) for _ in range(POOL)
    ]
    mixer = Mixer(pool)
    assert mixer.changes_all
    (mixed,) = BlockMixer(mixer, pool).mix([(0, 1, 2)])
    left, right, got = (s.tensors[1] for s in (pool[0], pool[1], mixed))
    assert ((got == left) | (got == right)).all()
    assert not torch.equal(got, left) and not torch.equal(got, right)


STRUCTURED = {
    "offsets": lambda: torch.randint(1, 9, (40,)).cumsum(0),
    "permutation": lambda: torch.randperm(40),
    "chosen_experts": lambda: torch.rand(30, 8).topk(3).indices,
    "one_hot": lambda: torch.nn.functional.one_hot(torch.randint(6, (30,)), 6),
}


@pytest.mark.parametrize("kind", STRUCTURED)
def test_integers_that_mean_something_together_stay_so_and_no_set_is_mixed(kind: str) -> None:
    pool = [InputSet([], [torch.randn(40), STRUCTURED[kind]()]) for _ in range(4)]
    assert not any(free_integers(pool))
    mixer = Mixer(pool)
    assert not mixer.changes_all
    mixed = mixer.mix(pool[2], pool[1], 0)
    assert torch.equal(mixed.tensors[1], pool[2].tensors[1])


def test_integers_that_are_always_the_same_do_not_matter() -> None:
    pool = [InputSet([], [torch.randn(40), torch.arange(40)]) for _ in range(4)]
    assert Mixer(pool).changes_all


def test_tensors_too_small_for_many_mixtures_are_left_alone() -> None:
    pool = pool_of((23,), (torch.float32,), 3)
    mixer = Mixer(pool)
    assert not mixer.changes_all
    (mixed,) = BlockMixer(mixer, pool).mix([(2, 1, 0)])
    assert torch.equal(mixed.tensors[0], pool[2].tensors[0])


def test_the_pool_stays_as_it_was() -> None:
    pool = pool_of((8, 8), (torch.float32,), 3)
    before = [inputs.tensors[0].clone() for inputs in pool]
    mixed = BlockMixer(Mixer(pool), pool).mix([(0, 1, 0), (1, 2, 4095)])
    for inputs in mixed:
        inputs.tensors[0].zero_()
    assert all(torch.equal(i.tensors[0], old) for i, old in zip(pool, before, strict=True))


def test_nan_and_infinity_survive_with_their_bits() -> None:
    odd = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45] * 16)
    pool = [InputSet([], [odd]), InputSet([], [odd.flip(0)])]
    (mixed,) = BlockMixer(Mixer(pool), pool).mix([(0, 1, 9)])
    patterns = set(odd.view(torch.int32).tolist())
    assert set(mixed.tensors[0].view(torch.int32).tolist()) <= patterns
