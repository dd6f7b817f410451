"""A process that tries mined classes out: `python -m ...mine.inside SECONDS`.

Reads one request per line and answers each with one line. It never runs mined code itself: every
class gets a confined child, without network and without a file system to write to, that is ended
after so many seconds.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.sandbox.confine import (
    Policy,
    default_readable,
    die_with_parent,
    run_confined,
)
from kernel_smith.trajectories.mine.closure import Extract
from kernel_smith.trajectories.mine.inside.search import find_plan
from kernel_smith.trajectories.mine.refusal import Refused

_MEMORY = 4 << 30
_SCRATCH = 16 << 20
_OWN = Extract(
    class_name="Own",
    imports=("import torch",),
    body="class Own(torch.nn.Module):\n    def forward(self, x):\n        return x.tanh()",
    path="",
    line=0,
    docstring="",
    config_fields=(),
    config_defaults={},
)


def main() -> None:
    seconds = int(sys.argv[1])
    die_with_parent()
    torch.set_num_threads(1)
    # What torch imports at its first use is then there for every child.
    find_plan(_OWN)
    readable = default_readable()
    with tempfile.TemporaryDirectory(prefix="kernel-smith-mine-") as scratch:
        policy = Policy(
            scratch=Path(scratch),
            readable=readable,
            memory_bytes=_MEMORY,
            processes=16,
            cpu_seconds=seconds,
            file_bytes=_SCRATCH,
            scratch_bytes=_SCRATCH,
            cores=frozenset(os.sched_getaffinity(0)),
        )
        for line in sys.stdin:
            print(json.dumps(_answer(line, policy, seconds)), flush=True)


def _answer(line: str, policy: Policy, seconds: int) -> dict[str, Any]:
    extract = Extract(**json.loads(line))
    try:
        # The alarm ends the monitor, and with it the child, whatever the child waits for.
        outcome = run_confined(
            lambda: _try(extract), policy, prepare=lambda: signal.alarm(seconds + 5)
        )
    except InternalError:
        return _refusal("timeout", f"after {seconds + 5} seconds")
    except ValueError:
        return _refusal("crashed", "it garbled its answer")
    if isinstance(outcome.value, dict):
        return {**outcome.value, "missing": list(outcome.report.missing)}
    if outcome.exit_code in (-signal.SIGXCPU, -signal.SIGKILL):
        return _refusal("timeout", f"after {seconds} seconds of computing, or out of memory")
    return _refusal("crashed", (outcome.error or f"exit code {outcome.exit_code}")[:300])


def _try(extract: Extract) -> dict[str, Any]:
    # Both are closed, and mined code may print.
    sys.stdout = sys.stderr = io.StringIO()
    try:
        return {"plan": find_plan(extract).model_dump(mode="json")}
    except Refused as refused:
        return _refusal(refused.reason, refused.detail)


def _refusal(reason: str, detail: str) -> dict[str, Any]:
    return {"refused": reason, "detail": detail}


if __name__ == "__main__":
    main()
