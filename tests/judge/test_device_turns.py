"""Judges that take turns on a device, each in a process of its own."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE = 30.0
A_WHILE = 0.2  # to see that nothing happens

PLAYING = """
import sys
from kernel_smith.evaluation.judge.device.turns import Turns

turns, entered = Turns(), []
for line in sys.stdin:
    word = line.strip()
    if word == "leave":
        entered.pop().__exit__(None, None, None)
    elif word in ("pause", "step_out", "come_back"):
        getattr(turns, word)()
    else:
        entered.append(getattr(turns, word)())
        entered[-1].__enter__()
    print(word, flush=True)
"""


class Player:
    """A process that enters (`sharing`, `alone`, `stepping_out`), pauses and leaves when told."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PLAYING],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def begin(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())

    def done(self, seconds: float = PATIENCE) -> bool:
        """Has it done what it began? Waits until it has."""
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], seconds)[0]:
            return False
        return bool(output.readline())

    def do(self, word: str) -> None:
        self.begin(word)
        assert self.done()

    def waits(self) -> bool:
        return not self.done(A_WHILE)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def player(tmp_path: Path) -> Iterator[Callable[[], Player]]:
    players: list[Player] = []

    def make() -> Player:
        players.append(Player(tmp_path))
        return players[-1]

    yield make
    for one in players:
        one.kill()


def wait_for_closed_door(folder: Path) -> None:
    """Until somebody waits for the device alone."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for path in folder.glob("*-door.lock"):
            with path.open() as door:
                try:
                    fcntl.flock(door, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return
        time.sleep(0.01)
    raise AssertionError("nobody closed the door")


def test_those_who_share_are_there_together(player: Callable[[], Player]) -> None:
    first, second = player(), player()
    first.do("sharing")
    second.do("sharing")


@pytest.mark.parametrize("other", ["sharing", "alone"])
def test_who_is_alone_keeps_others_out(player: Callable[[], Player], other: str) -> None:
    first, second = player(), player()
    first.do("alone")
    second.begin(other)
    assert second.waits()
    first.do("leave")
    assert second.done()


def test_who_shares_keeps_out_those_who_want_to_be_alone(player: Callable[[], Player]) -> None:
    first, second = player(), player()
    first.do("sharing")
    second.begin("alone")
    assert second.waits()
    first.do("leave")
    assert second.done()


def test_newcomers_do_not_overtake_one_who_waits_to_be_alone(
    player: Callable[[], Player], tmp_path: Path
) -> None:
    sharer, loner, newcomer = player(), player(), player()
    sharer.do("sharing")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    newcomer.begin("sharing")
    assert newcomer.waits()
    sharer.do("leave")
    assert loner.done()
    assert newcomer.waits()
    loner.do("leave")
    assert newcomer.done()


def test_who_steps_out_lets_another_be_alone_and_comes_back(player: Callable[[], Player]) -> None:
    sharer, loner = player(), player()
    sharer.do("sharing")
    sharer.do("stepping_out")
    loner.do("alone")
    sharer.begin("leave")
    assert sharer.waits()
    loner.do("leave")
    assert sharer.done()
    loner.begin("alone")
    assert loner.waits()
    sharer.do("leave")
    assert loner.done()


def test_who_is_alone_cannot_step_out(player: Callable[[], Player]) -> None:
    first, second = player(), player()
    first.do("alone")
    first.do("stepping_out")
    second.begin("sharing")
    assert second.waits()


def test_stepping_out_of_nothing_takes_nothing(player: Callable[[], Player]) -> None:
    outsider, loner = player(), player()
    loner.do("alone")
    outsider.do("stepping_out")
    outsider.do("leave")


@pytest.mark.parametrize("how", ["sharing", "alone"])
def test_the_place_of_one_who_dies_is_free(player: Callable[[], Player], how: str) -> None:
    first, second = player(), player()
    first.do(how)
    first.kill()
    second.do("alone")


def test_one_who_dies_waiting_leaves_the_door_open(
    player: Callable[[], Player], tmp_path: Path
) -> None:
    sharer, loner, newcomer = player(), player(), player()
    sharer.do("sharing")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    loner.kill()
    newcomer.do("sharing")


def test_who_pauses_lets_one_who_waits_to_be_alone_go_first(
    player: Callable[[], Player], tmp_path: Path
) -> None:
    sharer, loner = player(), player()
    sharer.do("sharing")
    sharer.do("pause")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    sharer.begin("pause")
    assert loner.done()
    assert sharer.waits()
    loner.do("leave")
    assert sharer.done()
    loner.begin("alone")
    assert loner.waits()


def test_who_is_out_comes_back_once(player: Callable[[], Player]) -> None:
    sharer, loner = player(), player()
    sharer.do("sharing")
    sharer.do("step_out")
    loner.do("alone")
    sharer.do("stepping_out")
    sharer.do("leave")  # was out before: stays out
    sharer.begin("come_back")
    assert sharer.waits()
    loner.do("leave")
    assert sharer.done()
    sharer.do("come_back")
    sharer.do("leave")
    loner.do("alone")


def test_who_is_alone_or_outside_does_not_pause(player: Callable[[], Player]) -> None:
    first, second = player(), player()
    second.do("pause")
    first.do("alone")
    first.do("pause")
    second.do("pause")
    second.begin("sharing")
    assert second.waits()
