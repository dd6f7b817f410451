"""Pages of a file that a process has made its own are told from those that it has not."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_smith.evaluation.judge.evidence.modified_code import is_modified
from kernel_smith.evaluation.judge.evidence.profile import attribute

PAGES = 8


@pytest.fixture
def private_copy(tmp_path: Path) -> Iterator[mmap.mmap]:
    path = tmp_path / "kernel.so"
    path.write_bytes(os.urandom(PAGES * mmap.PAGESIZE))
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as copy,
    ):
        yield copy


def place(copy: mmap.mmap) -> tuple[int, int]:
    begin = ctypes.addressof(ctypes.c_char.from_buffer(copy))
    return begin, begin + len(copy)


def test_what_was_only_read_is_not_modified(private_copy: mmap.mmap) -> None:
    begin, end = place(private_copy)
    assert not is_modified(os.getpid(), begin, end)
    assert private_copy[:] and not is_modified(os.getpid(), begin, end)


@pytest.mark.parametrize("page", [0, 3, PAGES - 1])
def test_one_page_that_was_written_to_is_enough(private_copy: mmap.mmap, page: int) -> None:
    begin, end = place(private_copy)
    private_copy[page * mmap.PAGESIZE + 5] ^= 1
    assert is_modified(os.getpid(), begin, end)
    at = begin + page * mmap.PAGESIZE
    assert is_modified(os.getpid(), at, at + 1)
    assert not any(
        is_modified(os.getpid(), low, low + mmap.PAGESIZE)
        for low in range(begin, end, mmap.PAGESIZE)
        if low != at
    )


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert not is_modified(1 << 22, 0x1000, 0x2000)


def test_modified_code_is_nobodys() -> None:
    maps = "1000-2000 r-xp 0 fe:00 1 /k/kernel.so\n3000-4000 rwxp 0 fe:00 1 /k/kernel.so\n"
    shares = attribute(
        [0x1001, 0x1002, 0x1003, 0x3001],
        maps,
        lambda path: path == "/k/kernel.so",
        lambda begin, end: (begin, end) == (0x3000, 0x4000),
    )
    assert [(s.origin, s.share) for s in shares] == [("authored", 0.75), ("unknown", 0.25)]
