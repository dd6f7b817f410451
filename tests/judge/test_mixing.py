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


ORDERED = {
    "sorted": lambda: torch.randn(40).sort().values,
    "falling rows": lambda: torch.rand(3, 40).sort(descending=True).values,
    "symmetric": lambda: (lambda m: m + m.T)(torch.randn(8, 8)),
    "adds up to one": lambda: torch.softmax(torch.randn(5, 9), -1),
    "adds up to one over all rows": lambda: torch.softmax(torch.randn(5000), 0),
    "of length one": lambda: torch.nn.functional.normalize(torch.randn(5, 9)),
    "orthogonal": lambda: torch.linalg.qr(torch.randn(6, 6)).Q,
    "one hot": lambda: torch.eye(6)[torch.randint(6, (30,))],
}
UNORDERED = {
    "numbers": lambda: torch.randn(8, 8),
    "positive": lambda: torch.rand(70_000),
    "of half precision": lambda: torch.randn(8, 8).half(),
    "of eight bits": lambda: torch.randn(8, 8).to(torch.float8_e4m3fn),
    "hidden at random": lambda: torch.zeros(8, 8).masked_fill(torch.rand(8, 8) < 0.5, -torch.inf),
    "hidden in all rows but one": lambda: torch.zeros(8, 8).index_fill_(
        0, torch.randperm(8)[:7], -torch.inf
    ),
    "below the diagonal": lambda: torch.randn(8, 8).tril(),
    "some zeros": lambda: torch.relu(torch.randn(3, 30)),
}


@pytest.mark.parametrize("kind", ORDERED)
def test_numbers_that_belong_together_are_taken_as_they_were_drawn(kind: str) -> None:
    pool = [InputSet([], [torch.randn(40), ORDERED[kind]()]) for _ in range(4)]
    mixer = Mixer(pool)
    assert not mixer.changes_all
    mixed = mixer.mix(pool[2], pool[1], 0)
    assert torch.equal(mixed.tensors[1], pool[2].tensors[1])


@pytest.mark.parametrize("kind", UNORDERED)
def test_numbers_without_order_are_mixed(kind: str) -> None:
    assert Mixer([InputSet([], [UNORDERED[kind]()]) for _ in range(4)]).changes_all


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_few_numbers_lie_between_those_of_both(dtype: torch.dtype) -> None:
    """There are few mixtures of them, and what follows from them alone may have taken long."""
    pool = [InputSet([], [torch.randn(30), torch.randn(5).to(dtype)]) for _ in range(4)]
    mixer = Mixer(pool)
    assert mixer.changes_all
    wanted = [(2, 1, 7), (2, 1, 3000)]
    in_blocks = [mixed.tensors[1] for mixed in BlockMixer(mixer, pool).mix(wanted)]
    singly = [mixer.mix(pool[a], pool[b], shift).tensors[1] for a, b, shift in wanted]
    ends = torch.stack([pool[2].tensors[1].double(), pool[1].tensors[1].double()])
    for mine, other in zip(in_blocks, singly, strict=True):
        assert mine.dtype == dtype and bits(mine) == bits(other)
        assert ((mine.double() >= ends.amin(0)) & (mine.double() <= ends.amax(0))).all()
    assert bits(singly[0]) != bits(singly[1])


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32], ids=str)
def test_of_few_whole_numbers_there_are_no_others(dtype: torch.dtype) -> None:
    pool = [
        InputSet([], [torch.randn(40), torch.randint(1000, (5,)).to(dtype)]) for _ in range(POOL)
    ]
    mixer = Mixer(pool)
    assert not mixer.changes_all
    assert mixer.changes_all_but_few


LAYOUTS = {
    "gaps": lambda: torch.randn(6, 20)[:, ::2],
    "one row for all": lambda: torch.randn(1, 30).expand(4, 30),
    "turned": lambda: torch.randn(6, 8).t(),
    "overlapping": lambda: torch.randn(40).as_strided((5, 30), (2, 1)),
}


@pytest.mark.parametrize("kind", LAYOUTS)
def test_mixtures_lie_in_memory_as_what_they_are_made_of(kind: str) -> None:
    pool = [InputSet([], [LAYOUTS[kind]()]) for _ in range(4)]
    left, right = pool[0], pool[1]
    mixed = Mixer(pool).mix(left, right, 17)
    assert mixed.fits_in_place_of(left)
    ((got,), (a,), (b,)) = mixed.tensors, left.tensors, right.tensors
    assert ((got == a) | (got == b)).all()
    assert not torch.equal(got, a) and not torch.equal(got, b)


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
