"""Results read from the memory of another process, as they are at that moment."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from kernel_smith.evaluation.judge.processes.fetching import (
    Fillings,
    Piece,
    Place,
    fetch,
    overwrite,
    permitted,
)

HOLDER = """
import ctypes
words = [ctypes.create_string_buffer(text, 4096) for text in (b"first", b"second")]
print(*map(ctypes.addressof, words), flush=True)
input()
"""


@pytest.fixture
def holder() -> Iterator[tuple[int, list[int]]]:
    """A process that holds two words, and their addresses."""
    command = [sys.executable, "-c", HOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process.pid, [int(word) for word in process.stdout.readline().split()]
        process.kill()


def piece(address: int, target: torch.Tensor) -> Piece:
    return Piece(address, target.data_ptr(), target.numel())


def text(target: torch.Tensor) -> bytes:
    return bytes(target.tolist()).rstrip(b"\0")


def test_memory_of_a_child_may_be_read(holder: tuple[int, list[int]]) -> None:
    assert permitted(holder[0])


def test_a_process_that_is_gone_may_not_be_read() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert not permitted(process.pid)


def test_every_piece_arrives_in_its_place(holder: tuple[int, list[int]]) -> None:
    pid, addresses = holder
    targets = [torch.zeros(8, dtype=torch.uint8) for _ in addresses]
    fetch(pid, [piece(a, t) for a, t in zip(addresses, targets, strict=True)])
    assert [text(t) for t in targets] == [b"first", b"second"]


def test_an_address_that_does_not_exist_spoils_no_other(holder: tuple[int, list[int]]) -> None:
    pid, (first, second) = holder
    targets = [torch.full((8,), 0x2A, dtype=torch.uint8) for _ in range(3)]
    fetch(pid, [piece(a, t) for a, t in zip((first, 8, second), targets, strict=True)])
    assert [text(t) for t in targets] == [b"first", b"*" * 8, b"second"]


def test_more_pieces_than_the_kernel_takes_at_once(holder: tuple[int, list[int]]) -> None:
    pid, (first, _) = holder
    targets = torch.zeros(1500, 5, dtype=torch.uint8)
    fetch(pid, [piece(first, row) for row in targets])
    assert all(text(row) == b"first" for row in targets)


def test_memory_is_overwritten_where_that_is_possible(holder: tuple[int, list[int]]) -> None:
    pid, (first, second) = holder
    places = [Place(first, 3, 0), Place(8, 4, 0), Place(second, 4096, mmap.PAGESIZE)]
    assert overwrite(pid, places, Fillings(b"AB")) == [1]
    targets = [torch.zeros(8, dtype=torch.uint8) for _ in range(2)]
    fetch(pid, [piece(a, t) for a, t in zip((first, second), targets, strict=True)])
    assert [text(t) for t in targets] == [b"AAAst", b"BBBBBBBB"]


def test_nothing_is_overwritten_without_a_place(holder: tuple[int, list[int]]) -> None:
    assert overwrite(holder[0], [], Fillings(b"A")) == []


@pytest.mark.parametrize("begin", [0, 5, 3 * mmap.PAGESIZE, 7 * mmap.PAGESIZE + 1])
@pytest.mark.parametrize("size", [1, 5000, 3_000_000])
def test_large_memory_is_filled_with_other_bytes_for_each_page(begin: int, size: int) -> None:
    """This process's own."""
    fillings, memory = Fillings(range(5)), torch.full((size + 1,), 9, dtype=torch.uint8)
    assert overwrite(os.getpid(), [Place(memory.data_ptr(), size, begin)], fillings) == []
    assert torch.equal(memory[:size], fillings.content(begin, size))
    assert memory[size] == 9
    expected = [(begin + offset) // mmap.PAGESIZE % 5 for offset in range(0, size, 999)]
    assert memory[:size:999].tolist() == expected
    assert [fillings.at(begin + offset) for offset in range(0, size, 999)] == expected
