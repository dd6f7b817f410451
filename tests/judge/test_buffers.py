"""Memory shared with a process: made to last, and results read from where the process says."""

from __future__ import annotations

import mmap
import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.judge.platform.buffers import POISON, HostBuffers, Spoilt
from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed
from kernel_smith.evaluation.sandbox.arena import Layout, Slot


class StandIn:
    """A child whose memory is this process's own, or nobody's."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.asked: list[tuple[str, int, list[int]]] = []

    def ready(self) -> None:
        pass

    def ask(self, op: str, timeout: float, *, fds: tuple[int, ...], sizes: list[int]) -> None:
        assert all(os.fstat(fd).st_size >= size for fd, size in zip(fds, sizes, strict=True))
        self.asked.append((op, len(fds), sizes))


def make(room: HostBuffers, child: StandIn, inputs: int = 4096, outputs: int = 4096) -> None:
    room.make(cast(Child, child), inputs, outputs, 5.0)


@pytest.fixture
def child() -> StandIn:
    return StandIn(os.getpid())


@pytest.fixture
def room(child: StandIn) -> Iterator[HostBuffers]:
    room = HostBuffers()
    make(room, child)
    child.asked.clear()
    yield room
    room.leave()


def slots_for(*results: torch.Tensor) -> list[Slot]:
    layout = Layout()
    return [layout.place(t.shape, t.contiguous().stride(), t.dtype) for t in results]


def fetched(room: HostBuffers, child: StandIn, *rows: list[Slot]) -> list[list[torch.Tensor]]:
    """What lies in the slots after fetching, where poison lay before."""
    room.outputs.raw(0, room.outputs.size).fill_(POISON)
    room.fetch(cast(Child, child), rows)
    return [[room.outputs.view(slot) for slot in row] for row in rows]


def poisoned(tensor: torch.Tensor) -> bool:
    return bool((tensor.contiguous().view(torch.uint8) == POISON).all())


# ---------------------------------------------------------------- making room


def test_a_process_whose_memory_can_be_read_gets_the_inputs_alone(child: StandIn) -> None:
    room = HostBuffers()
    make(room, child, 10_000, 20_000)
    assert room.fetches
    ((op, descriptors, sizes),) = child.asked
    assert (op, descriptors, sizes) == ("map", 1, [room.inputs.size])
    assert room.inputs.size >= 10_000
    assert room.outputs.size >= 20_000
    assert room.outputs.fd < 0
    room.leave()


def test_a_process_whose_memory_cannot_be_read_gets_room_for_its_results() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    child, room = StandIn(gone.pid), HostBuffers()
    make(room, child)
    assert not room.fetches
    assert child.asked == [("map", 2, [room.inputs.size, room.outputs.size])]
    room.leave()


def test_room_is_made_anew_only_where_it_is_too_small(room: HostBuffers, child: StandIn) -> None:
    make(room, child, 4096, 4096)
    make(room, child, 1, 1)
    assert child.asked == []
    make(room, child, 4096, 100_000)
    assert room.outputs.size >= 100_000
    make(room, child, 100_000, 4096)
    assert room.inputs.size >= 100_000
    assert len(child.asked) == 2


def test_leaving_closes_what_was_shared(child: StandIn) -> None:
    before = set(os.listdir("/proc/self/fd"))
    room = HostBuffers()
    make(room, child)
    make(room, child, 100_000, 100_000)
    room.leave()
    room.leave()
    del room  # and with it the mapping
    assert set(os.listdir("/proc/self/fd")) == before


# ---------------------------------------------------------------- reading results


def test_an_address_alone_stands_for_a_dense_result(room: HostBuffers, child: StandIn) -> None:
    results = [torch.randn(3), torch.randn(3)]
    room.understand([t.data_ptr() for t in results], 2, [(1,)])
    slots = slots_for(*results)
    got = fetched(room, child, [slots[0]], [slots[1]])
    assert [torch.equal(row[0], t) for row, t in zip(got, results, strict=True)] == [True, True]


def test_results_are_put_into_the_usual_order(room: HostBuffers, child: StandIn) -> None:
    """One lies as its slot does, the other transposed, as the reference's own result does."""
    plain, turned = torch.randn(2, 4), torch.randn(4, 2).t()
    places = [[plain.data_ptr(), [4, 1]], [turned.data_ptr(), [1, 2]]]
    room.understand([places], 1, [(4, 1), (1, 2)])
    ((one, other),) = fetched(room, child, slots_for(plain, turned))
    assert torch.equal(one, plain)
    assert torch.equal(other, turned)


def test_a_result_in_no_known_order_is_not_read(room: HostBuffers, child: StandIn) -> None:
    result = torch.randn(4, 2)
    for stride in ([1, 4], [0, 0], [2], "21", None, {"a": 1}):
        room.understand([[[result.data_ptr(), stride]]], 1, [(2, 1)])
        ((got,),) = fetched(room, child, slots_for(result))
        assert poisoned(got) == (stride is not None)


@pytest.mark.parametrize("address", [0, 8, (1 << 63) - 1])
def test_memory_that_does_not_exist_leaves_poison_and_spoils_no_other(
    room: HostBuffers, child: StandIn, address: int
) -> None:
    result = torch.randn(3)
    room.understand([address, result.data_ptr()], 2, [(1,)])
    slots = slots_for(result, result)
    (lost,), (kept,) = fetched(room, child, [slots[0]], [slots[1]])
    assert poisoned(lost)
    assert torch.equal(kept, result)


def test_rearranged_memory_that_does_not_exist_is_poison(room: HostBuffers, child: StandIn) -> None:
    result = torch.randn(4, 2).t()
    room.understand([[[8, [1, 2]]]], 1, [(1, 2)])
    ((got,),) = fetched(room, child, slots_for(result))
    assert poisoned(got)


def test_empty_results_are_nothing_to_read(room: HostBuffers, child: StandIn) -> None:
    room.understand([[[0, [4, 1]]]], 1, [(4, 1)])
    ((got,),) = fetched(room, child, slots_for(torch.empty(0, 4)))
    assert got.shape == (0, 4)


def test_a_call_with_too_few_or_too_many_results_has_none(
    room: HostBuffers, child: StandIn
) -> None:
    result = torch.randn(3)
    place = [result.data_ptr(), [1]]
    room.understand([[place], [place, place], [place] * 3], 3, [(1,), (1,)])
    slots = slots_for(*[result] * 6)
    too_few, right, too_many = fetched(room, child, slots[:2], slots[2:4], slots[4:])
    assert all(poisoned(t) for t in (*too_few, *too_many))
    assert all(torch.equal(t, result) for t in right)


@pytest.mark.parametrize("reported", [[], [8], [8, 8, 8], {}, ""])
def test_another_number_of_calls_breaks_the_protocol(room: HostBuffers, reported: Any) -> None:
    with pytest.raises(ChildFailed, match="number of results") as caught:
        room.understand(reported, 2, [(1,)])
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    "reported",
    [
        None,
        7,
        [None],
        [1.5],
        [-1],
        [1 << 63],
        [[8]],
        [[[8]]],
        [[[8, [1], 2]]],
        [[["8", [1]]]],
        [[[None, None]]],
        ["ab"],
        [{"address": 8}],
    ],
    ids=repr,
)
def test_malformed_places_break_the_protocol(room: HostBuffers, reported: Any) -> None:
    with pytest.raises(ChildFailed, match="malformed places") as caught:
        room.understand(reported, 1, [(1,)])
    assert caught.value.kind == "protocol"


# ---------------------------------------------------------------- giving results back


def spoil(room: HostBuffers, child: StandIn, own: list[bool], *rows: list[Slot]) -> Spoilt:
    return room.spoil(cast(Child, child), rows, own)


def test_results_are_overwritten_where_the_process_has_them(
    room: HostBuffers, child: StandIn
) -> None:
    plain, turned, foreign = torch.zeros(2, 4), torch.zeros(4, 2).t(), torch.zeros(3)
    places = [[plain.data_ptr(), [4, 1]], [turned.data_ptr(), [1, 2]], [foreign.data_ptr(), [1]]]
    room.understand([places], 1, [(4, 1), (1, 2), (1,)])
    slots = slots_for(plain, turned, foreign)
    fetched(room, child, slots)
    spoilt = spoil(room, child, [True, True, False], slots)
    for output, result in enumerate((plain, turned.t())):
        left = result.contiguous().view(torch.uint8).flatten()
        assert torch.equal(left, spoilt.content(0, output, 32))
    assert not spoilt.overlapping
    assert (foreign == 0).all(), "not memory of its own"
    assert all((room.outputs.view(slot) == 0).all() for slot in slots), "the judge has its copy"


def test_a_result_that_cannot_be_overwritten_counts_as_absent(
    room: HostBuffers, child: StandIn
) -> None:
    guarded = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ)
    with warnings.catch_warnings():  # it is not writable, which is the point
        warnings.simplefilter("ignore")
        result = torch.frombuffer(guarded, dtype=torch.float32, count=8)
    other = torch.zeros(8)
    room.understand([result.data_ptr(), other.data_ptr()], 2, [(1,)])
    slots = slots_for(result, other)
    (got,), (beside,) = fetched(room, child, [slots[0]], [slots[1]])
    assert torch.equal(got, result)
    spoil(room, child, [True], [slots[0]], [slots[1]])
    assert poisoned(got)
    assert (beside == 0).all()


def test_pages_that_lie_in_several_places_are_noticed(room: HostBuffers, child: StandIn) -> None:
    size = 4 * mmap.PAGESIZE
    with tempfile.TemporaryFile() as file:
        file.truncate(size)
        twice = [mmap.mmap(file.fileno(), size) for _ in range(2)]
    shared = [torch.frombuffer(memory, dtype=torch.uint8) for memory in twice]
    results = [shared[0], torch.zeros(size, dtype=torch.uint8), shared[1]]
    room.understand([[[t.data_ptr(), [1]] for t in results]], 1, [(1,)] * 3)
    slots = slots_for(*results)
    make(room, child, 4096, 4 * size)
    fetched(room, child, slots)
    seen = spoil(room, child, [True, True, True], slots).overlapping
    assert seen and seen <= {0, 2}
    assert not spoil(room, child, [True, True, False], slots).overlapping


def test_results_that_overlap_are_noticed(room: HostBuffers, child: StandIn) -> None:
    memory = torch.zeros(3000)
    results = [memory[:2000], memory[1000:]]
    room.understand([[[t.data_ptr(), [1]] for t in results]], 1, [(1,)] * 2)
    slots = slots_for(*results)
    make(room, child, 4096, 1 << 16)
    fetched(room, child, slots)
    seen = [spoil(room, child, [True, True], slots).overlapping for _ in range(8)]
    assert frozenset().union(*seen) == {0}, "the other one was overwritten later"


def test_a_result_that_changed_since_it_was_fetched_is_noticed(
    room: HostBuffers, child: StandIn
) -> None:
    plain, turned = torch.zeros(2, 4), torch.zeros(4, 2).t()
    places = [[plain.data_ptr(), [4, 1]], [turned.data_ptr(), [1, 2]]]
    room.understand([places], 1, [(4, 1), (1, 2)])
    slots = slots_for(plain, turned)
    fetched(room, child, slots)
    assert room.unchanged(cast(Child, child), 0, slots) == [True, True]
    turned[1, 2] = 1.0
    assert room.unchanged(cast(Child, child), 0, slots) == [True, False]
    plain[1, 3] = 1.0
    assert room.unchanged(cast(Child, child), 0, slots) == [False, False]


def test_nothing_of_an_earlier_batch_is_taken_for_a_result(
    room: HostBuffers, child: StandIn
) -> None:
    right, gone = torch.arange(64.0), torch.arange(64.0)
    row = slots_for(right, gone)
    room.outputs.raw(0, room.outputs.size).fill_(0)
    room.understand([[[right.data_ptr(), [1]], [16, [1]]]], 1, [(1,), (1,)])
    room.fetch(cast(Child, child), [row])
    fetched_right, fetched_gone = room.results(0, row)
    assert torch.equal(fetched_right, right)
    assert poisoned(fetched_gone)
    room.understand([[[right.data_ptr(), [1]], [gone.data_ptr(), [7]]]], 1, [(1,), (1,)])
    room.outputs.raw(0, room.outputs.size).fill_(0)
    room.fetch(cast(Child, child), [row])
    assert poisoned(room.results(0, row)[1])
