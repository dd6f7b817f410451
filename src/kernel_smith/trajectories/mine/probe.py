"""`Prober`: asks a process with torch to try mined classes out, and checks what it answers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from kernel_smith.closing import Closing
from kernel_smith.trajectories.mine.closure import Extract
from kernel_smith.trajectories.mine.plan import Plan
from kernel_smith.trajectories.mine.refusal import Refused

_INSIDE = "kernel_smith.trajectories.mine.inside"


class Prober(Closing):
    """`with Prober(seconds) as prober: prober.find_plan(extract)`. One question at a time."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[str] | None = None
        self.missing: set[str] = set()
        """What this machine could not enforce."""

    def find_plan(self, extract: Extract) -> Plan:
        """Raises `Refused`. A process that died under a class is replaced for the next one."""
        process = self._ensure()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(asdict(extract)) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            raise Refused("crashed", "it took the process that watches it along")
        answer = json.loads(line)
        self.missing.update(map(str, answer.pop("missing", ())))
        return _plan(answer)

    def _ensure(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", _INSIDE, str(self._seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                # Ctrl-C at a terminal is for the one who asked.
                process_group=0,
            )
        return self._process

    def close(self) -> None:
        # Taken first: another thread may find it dead, and close it too.
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with process:
                pass


def _plan(answer: dict[str, Any]) -> Plan:
    if "plan" not in answer:
        raise Refused(str(answer.get("refused"))[:40], str(answer.get("detail"))[:300])
    try:
        return Plan.model_validate(answer["plan"])
    except ValidationError as error:
        raise Refused("implausible-plan", str(error)[:300]) from None
