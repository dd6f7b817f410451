"""Lanes that share one memory: they wait for others, never for themselves, and never for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_smith.evaluation.judge.platform.memory_claims import Claims, Level

GIB = 1 << 30

HOLDER = """
import sys, time
from kernel_smith.evaluation.judge.platform.memory_claims import Claims, Level

claims = Claims("test", lambda: Level(10 << 30, 0))
with claims.holding(int(sys.argv[1]) << 30, lambda held: None):
    print("holding", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def start_holder(gib: int) -> subprocess.Popen[str]:
    """Another judge that has claimed so much; it lets go when it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(gib)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "holding\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n")


def make_claims(used: int = 0) -> Claims:
    return Claims("test", lambda: Level(10 * GIB, used))


def test_alone_nobody_waits_however_much_is_wanted() -> None:
    with make_claims(used=9 * GIB).holding(99 * GIB, lambda held: pytest.fail("it waited")):
        pass


def test_two_that_fit_hold_their_shares_together() -> None:
    other = start_holder(4)
    claims = make_claims()
    with claims.holding(5 * GIB, lambda held: pytest.fail("it waited")):
        assert claims.of_others() == 4 * GIB
    end(other)


def test_one_that_does_not_fit_waits_until_the_other_has_let_go() -> None:
    other = start_holder(8)
    told: list[int] = []

    def hear(held: int) -> None:
        told.append(held)
        end(other)

    with make_claims().holding(5 * GIB, hear):
        assert told == [8 * GIB]


def test_memory_that_strangers_use_is_not_shared_out() -> None:
    """8 GiB are used, of which the other has claimed 2: of 10 GiB, 2 are left for this one."""
    other = start_holder(2)
    told: list[int] = []

    def hear(held: int) -> None:
        told.append(held)
        end(other)

    with make_claims(used=8 * GIB).holding(3 * GIB, hear):
        assert told == [2 * GIB]


def test_the_claim_of_a_process_that_was_killed_is_gone() -> None:
    other = start_holder(8)
    other.kill()
    other.communicate()
    begin = time.monotonic()
    with make_claims().holding(5 * GIB, lambda held: pytest.fail("it waited")):
        assert time.monotonic() - begin < 5
    assert make_claims().of_others() == 0


def test_a_spoilt_book_is_as_good_as_none(folder: Path) -> None:
    claims = make_claims()
    (folder / f"kernel-smith-memory-{os.getuid()}-test.json").write_text("{")
    with claims.holding(5 * GIB, lambda held: pytest.fail("it waited")):
        assert claims.of_others() == 0
