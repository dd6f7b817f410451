"""Six processes create the same store at once, ten times; `python eager_creators.py FOLDER`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from sample_events import started

from kernel_smith.store import Store


def create(path: Path, run: str, begin: float) -> None:
    while time.monotonic() < begin:
        pass
    with Store.open(path, create=True) as store:
        store.append(run, started(run))


for number in range(10):
    begin = time.monotonic() + 0.03
    children = []
    for run in "abcdef":
        child = os.fork()
        if child == 0:
            create(Path(sys.argv[1]) / f"{number}.sqlite", run, begin)
            os._exit(0)
        children.append(child)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
