"""Where a candidate's tensors live on a GPU, with a device that is made up."""

from __future__ import annotations

import itertools
from typing import ClassVar

import pytest
import torch

from kernel_smith.evaluation.sandbox import result_memory
from kernel_smith.evaluation.sandbox.result_memory import ResultMemory

MIB = 1 << 20
_addresses = itertools.count(1 << 40, 1 << 36)


class Chunk:
    made: ClassVar[list[Chunk]] = []

    def __init__(self, size: int) -> None:
        self.size, self.address, self.is_open = size, next(_addresses), True
        Chunk.made.append(self)

    @classmethod
    def create(cls, size: int) -> Chunk:
        return cls(size)

    def contains(self, address: int) -> bool:
        return self.address <= address < self.address + self.size

    def close(self) -> None:
        self.is_open = False


class Pool:
    """Keeps what was freed for the stream that it was used on, as PyTorch's does."""

    def __init__(self, memory: ResultMemory) -> None:
        self._memory = memory
        self._free: list[tuple[str, int, int]] = []

    def allocate(self, stream: str, size: int) -> int:
        for kept in self._free:
            if kept[0] == stream and kept[2] == size:
                self._free.remove(kept)
                return kept[1]
        address = self._memory._allocate(size, 0, None)
        assert address is not None
        return address

    def free(self, stream: str, address: int, size: int) -> None:
        self._free.append((stream, address, size))

    def give_back(self) -> None:
        while self._free:
            _, address, size = self._free.pop()
            self._memory._free(address, size, 0, None)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> ResultMemory:
    pools: list[Pool] = []

    def new_pool(memory: ResultMemory) -> Pool:
        pools.append(Pool(memory))
        return pools[-1]

    def give_back() -> None:
        """Of pools that nobody refers to any more."""
        for pool in pools[:-1]:
            pool.give_back()

    Chunk.made = []
    monkeypatch.setattr(result_memory, "DeviceMemory", Chunk)
    monkeypatch.setattr(result_memory, "granularity", lambda: 2 * MIB)
    monkeypatch.setattr(ResultMemory, "_new_pool", new_pool)
    monkeypatch.setattr(torch.cuda, "empty_cache", give_back)
    return ResultMemory()


def call(memory: ResultMemory, use: result_memory.Use, sizes: list[int]) -> None:
    """One whose tensors are there at once, and are all let go of."""
    memory.turn_to(use)
    pool: Pool = memory.pool  # type: ignore[assignment]
    found = [(pool.allocate(use, size), size) for size in sizes]
    for address, size in found:
        assert memory.locate(address) is not None
        pool.free(use, address, size)


def test_what_is_large_has_a_chunk_of_its_own_and_no_more(memory: ResultMemory) -> None:
    call(memory, "plain", [20 * MIB, 576 * MIB, 192 * MIB, 20 * MIB, 20 * MIB])
    assert [chunk.size // MIB for chunk in Chunk.made] == [64, 576, 192]
    call(memory, "plain", [2 * MIB, 20 * MIB, 2 * MIB])
    assert [chunk.size // MIB for chunk in Chunk.made] == [64, 576, 192]


def test_no_two_pieces_overlap(memory: ResultMemory) -> None:
    sizes = [20 * MIB, 2 * MIB, 64 * MIB, 30 * MIB, 20 * MIB, 100 * MIB, 62 * MIB, 2 * MIB]
    pieces = sorted((memory._allocate(size, 0, None) or 0, size) for size in sizes)
    for (address, size), (following, _) in itertools.pairwise(pieces):
        assert address + size <= following
    for address, size in pieces:
        (chunk,) = [chunk for chunk in Chunk.made if chunk.contains(address)]
        assert chunk.contains(address + size - 1)


def test_a_capture_gets_the_memory_of_the_calls_before_it(memory: ResultMemory) -> None:
    sizes = [1024 * MIB, 1024 * MIB, 192 * MIB, 32 * MIB]
    for use in ("plain", "captured", "plain", "plain", "captured"):
        call(memory, use, sizes)  # type: ignore[arg-type]
    assert sum(chunk.size for chunk in Chunk.made) == sum(sizes) + 32 * MIB


def test_little_memory_is_not_passed_on_which_would_take_longer(memory: ResultMemory) -> None:
    pool = memory.pool
    for use in ("plain", "captured", "plain"):
        call(memory, use, [2 * MIB])  # type: ignore[arg-type]
    assert memory.pool is pool


def test_nothing_is_left_once_a_workload_is_over(memory: ResultMemory) -> None:
    call(memory, "plain", [1024 * MIB, 32 * MIB])
    call(memory, "captured", [1024 * MIB, 32 * MIB])
    memory.reset()
    assert not any(chunk.is_open for chunk in Chunk.made)
    call(memory, "captured", [32 * MIB])
    assert [chunk.size // MIB for chunk in Chunk.made if chunk.is_open] == [64]
