"""Judges that take turns on a device, each in a process of its own."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE = 120.0
A_WHILE = 0.2  # to see that nothing happens

PLAYING = """
import sys
from kernel_smith.evaluation.judge.platform import device_lock as module

if len(sys.argv) > 1:
    module.AT_THE_DOOR = float(sys.argv[1])
turns, entered = module.DeviceLock(), []
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "leave":
        entered.pop().__exit__(None, None, None)
    elif word in ("pause", "step_out", "come_back"):
        getattr(turns, word)()
    elif word == "using":
        entered.append(module.using_device())
        entered[-1].__enter__()
    else:
        entered.append(getattr(turns, word)())
        entered[-1].__enter__()
    print(word, flush=True)
"""


class Player:
    """A process that enters (`sharing`, `alone`, `lingering`, `stepping_out`), pauses and leaves
    when it is told to."""

    def __init__(self, folder: Path, *, at_the_door: float = PATIENCE) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PLAYING, str(at_the_door)],
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._ready = False

    def begin(self, word: str) -> None:
        assert self._process.stdin is not None
        self._ready = self._ready or self.done()
        assert self._ready
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
def player(tmp_path: Path) -> Iterator[Callable[..., Player]]:
    players: list[Player] = []

    def make(**patience: float) -> Player:
        players.append(Player(tmp_path, **patience))
        return players[-1]

    yield make
    for one in players:
        one.kill()


def wait_for_closed_door(folder: Path) -> None:
    """Until somebody waits for a turn, or for the device alone."""
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


@pytest.mark.parametrize("first", ["sharing", "alone"])
@pytest.mark.parametrize("second", ["sharing", "alone"])
def test_one_at_a_time(player: Callable[[], Player], first: str, second: str) -> None:
    one, other = player(), player()
    one.do(first)
    other.begin(second)
    assert other.waits()
    one.do("leave")
    assert other.done()


def test_those_who_share_take_turns(player: Callable[[], Player], tmp_path: Path) -> None:
    first, second = player(), player()
    first.do("sharing")
    second.begin("sharing")
    wait_for_closed_door(tmp_path)
    time.sleep(A_WHILE)  # longer than a turn lasts
    first.begin("pause")
    assert second.done()
    assert first.waits()
    second.do("leave")
    assert first.done()


def test_beside_one_who_lingers_others_have_their_turns_but_none_is_alone(
    player: Callable[[], Player], tmp_path: Path
) -> None:
    lingerer, sharer, loner = player(), player(), player()
    lingerer.do("sharing")
    lingerer.do("lingering")
    sharer.do("sharing")
    sharer.do("leave")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    assert loner.waits()
    lingerer.begin("leave")
    assert loner.done()
    assert lingerer.waits()
    loner.do("leave")
    assert lingerer.done()


def test_one_who_lingers_may_step_out_and_come_back_to_linger(
    player: Callable[[], Player], tmp_path: Path
) -> None:
    lingerer, sharer, loner = player(), player(), player()
    lingerer.do("sharing")
    lingerer.do("lingering")
    lingerer.do("step_out")
    loner.do("alone")
    loner.do("leave")
    lingerer.do("come_back")
    sharer.do("sharing")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    assert loner.waits()
    sharer.do("leave")
    assert loner.waits()
    lingerer.begin("leave")
    assert loner.done()


def test_those_who_use_it_for_long_keep_one_alone_waiting_and_no_judge(
    player: Callable[[], Player], tmp_path: Path
) -> None:
    first, second, later, loner, sharer = (player() for _ in range(5))
    first.do("using")
    second.do("using")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    later.begin("using")
    assert later.waits(), "or there would always be somebody"
    for _ in range(3):
        sharer.do("sharing")
        sharer.do("leave")
    first.do("leave")
    assert loner.waits()
    second.do("leave")
    assert loner.done()
    assert later.waits()
    loner.do("leave")
    assert later.done()


def test_nobody_waits_for_ever(player: Callable[[], Player], tmp_path: Path) -> None:
    """One lingers and wants its turn back, which another has, which a third keeps out."""
    lingerer, sharer, loner = player(), player(), player()
    lingerer.do("sharing")
    lingerer.do("lingering")
    loner.begin("alone")
    wait_for_closed_door(tmp_path)
    assert loner.waits()
    sharer.begin("sharing")
    assert sharer.waits()
    lingerer.begin("leave")
    assert loner.done()
    loner.do("leave")
    assert sharer.done()
    sharer.do("leave")
    assert lingerer.done()


def test_who_waits_to_be_alone_keeps_nobody_out_for_as_long_as_another_lingers(
    player: Callable[..., Player],
) -> None:
    lingerer, sharer, loner = player(), player(), player(at_the_door=0.01)
    lingerer.do("sharing")
    lingerer.do("lingering")
    loner.begin("alone")
    assert loner.waits()
    for _ in range(3):
        sharer.do("sharing")
        sharer.do("leave")
    assert loner.waits()
    lingerer.do("step_out")
    assert loner.done()


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
    sharer.do("leave")
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


STRESS = """
import json, random, sys, time
from kernel_smith.evaluation.judge.platform.device_lock import DeviceLock

turns, rng, seen = DeviceLock(), random.Random(int(sys.argv[1])), []
end = time.monotonic() + float(sys.argv[2])


def use(kind, seconds):
    begin = time.monotonic()
    time.sleep(seconds)
    seen.append((kind, begin, time.monotonic()))


while time.monotonic() < end:
    if rng.random() < 0.3:
        with turns.alone():
            use("alone", rng.uniform(0, 0.02))
        continue
    with turns.sharing():
        for _ in range(rng.randrange(5)):
            use("turn", rng.uniform(0, 0.015))
            turns.pause()
            chance = rng.random()
            if chance < 0.3:
                with turns.lingering():
                    use("linger", rng.uniform(0, 0.01))
                    turns.step_out()
                    time.sleep(rng.uniform(0, 0.01))
                    turns.come_back()
                    use("linger", rng.uniform(0, 0.01))
            elif chance < 0.5:
                with turns.stepping_out():
                    time.sleep(rng.uniform(0, 0.01))
print(json.dumps(seen))
"""
MAY_OVERLAP = {("linger", "linger"), ("linger", "turn"), ("turn", "linger")}


def test_many_at_once_keep_the_rules_and_none_waits_for_ever(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", STRESS, str(number), "1.5"],
            env=environment,
            stdout=subprocess.PIPE,
        )
        for number in range(5)
    ]
    try:
        outputs = [process.communicate(timeout=PATIENCE)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    uses = [
        (begin, end, kind, who)
        for who, output in enumerate(outputs)
        for kind, begin, end in json.loads(output)
    ]
    assert {kind for _, _, kind, _ in uses} == {"alone", "turn", "linger"}
    assert len({who for *_, who in uses}) == 5
    for begin, end, kind, who in uses:
        beside = [u for u in uses if u[3] != who and u[0] < end and begin < u[1]]
        assert {(kind, other) for _, _, other, _ in beside} <= MAY_OVERLAP
