"""Appends events until it is killed; `python killed_writer.py STORE`.

For each line that it reads, it starts a process that goes on with run `run-1` and says after each
append which sequence number it got. The process is told to die from outside.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sample_events import candidate, conversation, evaluated, proposed

from kernel_smith.records import StepProposed
from kernel_smith.store import Store


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def go_on(path: Path) -> None:
    store = Store.open(path)
    with store.lock("run-1"):
        step = 0
        for _, event in store.events("run-1"):
            if isinstance(event, StepProposed):
                step = event.step + 1
        while True:
            parent = candidate(step - 1) if step else None
            talk = conversation(step)
            say(f"stored {store.append('run-1', proposed(step, parent, conversation=talk))}")
            say(f"stored {store.append('run-1', evaluated(step, 1 + step / 1000))}")
            step += 1


for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        say(f"pid {os.getpid()}")
        go_on(Path(sys.argv[1]))
    os.waitpid(child, 0)
    say("dead")
