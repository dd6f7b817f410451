"""`make_seed`: asks a process with torch for a seed, so that this one does not import it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.proposers.seed.host_memory import host_room
from kernel_smith.proposers.seed.record import Seed
from kernel_smith.proposers.seed.shortage import not_enough_for, shortage, tells_of_shortage
from kernel_smith.records import Task

Progress = Callable[[str], None]

PATIENCE_MINUTES = 5.0  # most kernels take the compiler seconds

_INSIDE = "kernel_smith.proposers.seed.inside"
_SHOWN_OF_LOG = 2000
_lock = threading.Lock()
_under_way: set[subprocess.Popen[str]] = set()
_KINDS = {"BadInput": BadInput, "MissingPrerequisite": MissingPrerequisite}


def _silent(what: str) -> None:
    """The default audience for progress."""


def make_seed(
    task: Task,
    device: str,
    workloads: Sequence[str] | None = None,
    progress: Progress = _silent,
    minutes: float = PATIENCE_MINUTES,
) -> Seed:
    """Turn the compiler's output for some workloads of a task (all by default) into a candidate.

    Raises `BadInput` with the reason where the compiler's output cannot be a candidate, or takes
    longer than that, and `MissingPrerequisite` where there is not enough memory.
    """
    request = {
        "task": task.model_dump(mode="json"),
        "device": device,
        "workloads": _chosen(task, workloads),
        "minutes": minutes,
    }
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        child = _start(log)
        with child, _noted(child):
            answer = _converse(child, request, progress)
        if answer is None:
            log.seek(0)
            tail = log.read()[-_SHOWN_OF_LOG:].strip()
            raise _died(task, child.returncode, tail)
    return _read(answer)


def _start(log: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", _INSIDE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


def abandon_seeds() -> None:
    """End the making of all seeds in this process: nobody waits for them any more, and they would
    keep it from ending."""
    with _lock:
        for child in _under_way:
            child.kill()


@contextlib.contextmanager
def _noted(child: subprocess.Popen[str]) -> Iterator[None]:
    with _lock:
        _under_way.add(child)
    try:
        yield
    finally:
        with _lock:
            _under_way.remove(child)


def _chosen(task: Task, names: Sequence[str] | None) -> list[str]:
    known = [workload.name for workload in task.workloads]
    for name in names or ():
        if name not in known:
            raise BadInput(
                f"task {task.name} has no workload {name!r}",
                hint=f"choose from: {', '.join(known)}",
            )
    return list(names or known)


def _converse(
    child: subprocess.Popen[str], request: dict[str, Any], progress: Progress
) -> dict[str, Any] | None:
    """Send the request; the last line of the answers that is not progress counts."""
    assert child.stdin is not None and child.stdout is not None
    _send(child.stdin, request)
    answer: dict[str, Any] | None = None
    for line in child.stdout:
        message = json.loads(line)
        if "progress" in message:
            progress(message["progress"])
        else:
            answer = message
    return answer


def _died(task: Task, code: int, log: str) -> Exception:
    """Make the error for a process without an answer: memory that ran out is no defect of ours."""
    if code == -signal.SIGKILL:
        what = "the compiler's process was killed (SIGKILL), as Linux does when memory runs out"
        return shortage(what, "cpu", host_room())
    if tells_of_shortage(log):
        device = "cuda" if "cuda" in log.lower() else "cpu"
        room = host_room() if device == "cpu" else None
        return shortage(not_enough_for(f"task {task.name}", device), device, room)
    return InternalError(f"the compiler's process ended with {code}: {log}")


def _send(pipe: IO[str], request: dict[str, Any]) -> None:
    try:
        with pipe:
            json.dump(request, pipe)
    except BrokenPipeError:
        return  # the process died early; its log says why


def _read(answer: dict[str, Any]) -> Seed:
    if "seed" in answer:
        return Seed.model_validate(answer["seed"])
    kind = _KINDS.get(answer["kind"])
    if kind is None:
        raise InternalError(answer["what"])
    raise kind(answer["what"], hint=answer["hint"])
