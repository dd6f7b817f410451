"""A page through which two processes start and finish batches, and neither harms the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kernel_smith.evaluation.sandbox.doorbell import Doorbell

PATIENCE = 120.0

ANSWERING = """
import sys
from kernel_smith.evaluation.sandbox.doorbell import Doorbell
bell = Doorbell(int(sys.argv[1]))
for mark in range(1, 4):
    if not bell.await_ring(mark, 30):
        sys.exit(1)
    bell.finish(10 * mark)
"""

RESIZING = """
import os, sys
refused = 0
for size in (0, 1 << 20):
    try:
        os.ftruncate(int(sys.argv[1]), size)
    except PermissionError:
        refused += 1
sys.exit(refused)
"""


@pytest.fixture
def bell() -> Iterator[Doorbell]:
    bell = Doorbell.create()
    yield bell
    bell.close()


def start(program: str, bell: Doorbell) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program, str(bell.fd)]
    return subprocess.Popen(command, pass_fds=(bell.fd,))


def test_each_ring_is_answered_by_the_other_process(bell: Doorbell) -> None:
    with start(ANSWERING, bell) as other:
        for mark in range(1, 4):
            bell.ring(mark)
            assert bell.await_finish(10 * mark, PATIENCE)
    assert other.returncode == 0


def test_nobody_waits_for_ever(bell: Doorbell) -> None:
    assert not bell.await_ring(1, 0.01)
    assert not bell.await_finish(1, 0.01)


def test_an_earlier_mark_is_no_answer(bell: Doorbell) -> None:
    bell.finish(4)
    assert not bell.await_finish(5, 0.01)
    assert bell.await_finish(4, 0)


def test_ringing_and_finishing_are_apart(bell: Doorbell) -> None:
    bell.ring(7)
    assert not bell.await_finish(7, 0.01)
    bell.finish(8)
    assert bell.await_ring(7, 0)
    assert bell.await_finish(8, 0)


def test_marks_are_as_large_as_a_secret_needs(bell: Doorbell) -> None:
    bell.ring(2**64 - 1)
    assert bell.await_ring(2**64 - 1, 0)


def test_the_other_side_cannot_take_the_page_away(bell: Doorbell) -> None:
    """To look at a page that is gone would kill the judge."""
    with start(RESIZING, bell) as other:
        other.wait(PATIENCE)
    assert other.returncode == 2
    bell.ring(1)
    assert bell.await_ring(1, 0)


def test_closing_twice_closes_nothing_of_others() -> None:
    bell = Doorbell.create()
    bell.close()
    reader, writer = os.pipe()
    bell.close()
    os.close(reader)
    os.close(writer)
