"""`kill -9` in the middle of appends loses nothing that was acknowledged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sample_events import candidate, conversation, evaluated, proposed

from kernel_smith.records import StepEvaluated, StepProposed
from kernel_smith.store import History, Store

KILLS = 12


def kill_once(writer: subprocess.Popen[str], chance: random.Random) -> int:
    """Let a process write for a moment, kill it, and answer with the last number it was given."""
    assert writer.stdin is not None and writer.stdout is not None
    writer.stdin.write("go\n")
    writer.stdin.flush()
    pid = int(writer.stdout.readline().split()[1])
    last = int(writer.stdout.readline().split()[1])
    time.sleep(chance.random() * 0.05)
    os.kill(pid, signal.SIGKILL)
    for line in writer.stdout:
        if line == "dead\n":
            break
        last = int(line.split()[1])
    return last


def check(path: Path, acknowledged: int) -> None:
    with Store.open(path) as store:
        events = list(store.events("run-1"))
        evaluations = store.runs()[0].evaluations
    assert [sequence for sequence, _ in events] == list(range(1, len(events) + 1))
    # One event may have been stored whose acknowledgement was never written.
    assert acknowledged <= len(events) <= acknowledged + 1
    history = History.of(event for _, event in events)
    assert history.funnel["evaluated"] == evaluations
    for _, event in events[1:]:
        if isinstance(event, StepProposed):
            parent = candidate(event.step - 1) if event.step else None
            talk = conversation(event.step)
            assert event == proposed(event.step, parent, conversation=talk)
        else:
            assert isinstance(event, StepEvaluated)
            assert event == evaluated(event.step, 1 + event.step / 1000)


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_dozen_kills(store: Store, path: Path) -> None:
    store.close()
    chance = random.Random(7)
    script = Path(__file__).with_name("killed_writer.py")
    writer = subprocess.Popen(
        [sys.executable, str(script), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with writer:
        for number in range(KILLS):
            acknowledged = kill_once(writer, chance)
            if number % 4 == 3:
                check(path, acknowledged)
            with Store.open(path) as store:
                assert acknowledged <= store.runs()[0].events <= acknowledged + 1
        assert writer.stdin is not None
        writer.stdin.close()
    assert writer.returncode == 0
