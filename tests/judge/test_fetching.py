"""Results read from the memory of another process, as they are at that moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from kernel_smith.evaluation.judge.processes.fetching import Piece, fetch, overwrite, permitted

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
    assert overwrite(pid, [(first, 3), (8, 4), (second, 4096)], 0x41) == [1]
    targets = [torch.zeros(8, dtype=torch.uint8) for _ in range(2)]
    fetch(pid, [piece(a, t) for a, t in zip((first, second), targets, strict=True)])
    assert [text(t) for t in targets] == [b"AAAst", b"AAAAAAAA"]


def test_nothing_is_overwritten_without_a_place(holder: tuple[int, list[int]]) -> None:
    assert overwrite(holder[0], [], 0x41) == []
