"""Prepares a program that calls a candidate, and that a tool can start and watch.

Such a tool and the program it starts talk to each other in ways that no sandbox of ours lets pass.
So the candidate runs unconfined there, after the judge has accepted it, and only for somebody who
asked for that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Task, Workload

Tool = Literal["ncu", "mctracer"]


class WatchedCall(NamedTuple):
    """The command to watch, and a folder that is gone afterwards."""

    command: tuple[str, ...]
    folder: Path


@contextmanager
def watched_call(
    task: Task, candidate: Candidate, workload: str | None, tool: Tool
) -> Iterator[WatchedCall]:
    """One call on one workload (default: the first), marked in the way that the tool sees."""
    chosen = _choose(task, workload)
    with tempfile.TemporaryDirectory(prefix=f"kernel-smith-{tool}-") as name:
        folder = Path(name)
        (folder / "task.json").write_text(task.model_dump_json())
        (folder / "candidate.json").write_text(candidate.model_dump_json())
        program = (sys.executable, "-m", "kernel_smith.evaluation.watching.target")
        yield WatchedCall((*program, tool, name, chosen.name), folder)


def _choose(task: Task, name: str | None) -> Workload:
    chosen = next((w for w in task.workloads if name in (None, w.name)), None)
    if chosen is None:
        known = ", ".join(w.name for w in task.workloads)
        raise BadInput(f"no workload is called {name!r}", hint=f"choose one of: {known}")
    return chosen
