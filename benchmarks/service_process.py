"""A service as a process of its own, for benchmarks: started, watched, killed, started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import httpx

_PATIENCE = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    pid: int
    parent: int
    begun: int  # in ticks since boot; tells a process from a later one with the same number
    cpu_seconds: float
    words: tuple[str, ...]


def _process(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] == "Z":
        return None
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    return Process(pid, int(fields[1]), int(fields[19]), cpu, tuple(words))


def cpu_seconds(pid: int) -> float:
    process = _process(pid)
    return process.cpu_seconds if process is not None else 0.0


def is_alive(process: Process) -> bool:
    now = _process(process.pid)
    return now is not None and now.begun == process.begun


def descendants(root: int) -> list[Process]:
    """All processes below this one, parents first."""
    children: dict[int, list[Process]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (process := _process(int(entry))) is not None:
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    parents = [root]
    while parents:
        below = children.get(parents.pop(), [])
        found += below
        parents += [process.pid for process in below]
    return found


def by_role(root: int) -> dict[str, list[Process]]:
    """The processes of a service that evaluates: its judges, their zygotes, and candidates."""
    everybody = descendants(root)
    judges = [each for each in everybody if "kernel_smith.evaluation.judge" in each.words]
    parents = {each.pid for each in judges}
    zygotes = [each for each in everybody if each.parent in parents and "candidates" in each.words]
    candidates = [each for zygote in zygotes for each in descendants(zygote.pid)]
    return {"judge": judges, "zygote": zygotes, "candidate": candidates}


def memory_mib(pid: int) -> float:
    """Memory that is resident now; 0 for a process that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    resident = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(resident[0]) / 1024 if resident else 0.0


class Server:
    """Always at the same address. `command` takes `--port`."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        self._port = _free_port()
        self._command = [*command, "--port", str(self._port)]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Seconds until it was ready."""
        begun = time.monotonic()
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.DEVNULL
        )
        with httpx.Client(trust_env=False) as http:
            while not self._is_ready(http):
                if self._process.poll() is not None:
                    sys.exit(f"the service ended with code {self._process.returncode}")
                if time.monotonic() - begun > _PATIENCE:
                    sys.exit("the service was never ready")
                time.sleep(0.02)
        return time.monotonic() - begun

    def _is_ready(self, http: httpx.Client) -> bool:
        try:
            return http.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_PATIENCE)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
