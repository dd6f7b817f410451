"""`make_seed`: asks a process with torch for a seed, so that this one does not import it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any

from kernel_smith.errors import BadInput, InternalError, Interrupted, MissingPrerequisite
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.proposers.seed.host_memory import host_room
from kernel_smith.proposers.seed.recipes import DEFAULT, Recipe
from kernel_smith.proposers.seed.record import Seed
from kernel_smith.proposers.seed.refusal import ends_process
from kernel_smith.proposers.seed.shortage import not_enough_for, shortage, tells_of_shortage
from kernel_smith.records import Task

Progress = Callable[[str], None]
UseDevice = Callable[[], AbstractContextManager[None]]

PATIENCE_MINUTES = 5.0  # most kernels take the compiler seconds

_INSIDE = "kernel_smith.proposers.seed.inside"
_SHOWN_OF_LOG = 2000
_lock = threading.Lock()
# A maker that nobody has any more loses its process by itself: its stdin ends.
_under_way: weakref.WeakSet[subprocess.Popen[str]] = weakref.WeakSet()
_KINDS = {"BadInput": BadInput, "MissingPrerequisite": MissingPrerequisite}


def _silent(what: str) -> None:
    """The default audience for progress."""


class SeedMaker:
    """A process with torch that makes seeds of a task, one after another; close it in the end.

    `use_device` is entered while the process computes on the GPU, which compiling does not.
    `compare`: whether seeds are compared with the reference before they are handed out.
    """

    def __init__(
        self,
        task: Task,
        device: str,
        workloads: Sequence[str] | None = None,
        minutes: float = PATIENCE_MINUTES,
        use_device: UseDevice = contextlib.nullcontext,
        *,
        compare: bool = True,
    ) -> None:
        self._task = task
        self._use_device = use_device
        self._request: dict[str, Any] = {
            "task": task.model_dump(mode="json"),
            "device": device,
            "workloads": _chosen(task, workloads),
            "minutes": minutes,
            "compare": compare,
        }
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._child = _start(self._log)
        self._end: Exception | None = None  # why the process has ended
        with _lock:
            _under_way.add(self._child)

    def make(self, recipe: Recipe = DEFAULT, progress: Progress = _silent) -> Seed:
        """Have the compiler's output turned into a candidate, by a recipe.

        Raises `BadInput` with the reason where the compiler's output cannot be a candidate, or
        takes longer than that, and `MissingPrerequisite` where there is not enough memory, or no
        C++ compiler for a seed that needs one.
        """
        if self._request["device"] == "cpu":
            find_toolchain("cpp")
        request = self._request | {"recipe": recipe.name}
        if self._end is None:
            last = _converse(self._child, request, progress, self._use_device)
            if "seed" in last or "kind" in last:
                return _read(last)
            self._end = self._why_it_ended(by_defect=not last or "defect" in last)
        raise self._end

    def close(self) -> None:
        """Let the process end."""
        with self._child, self._log:
            pass
        with _lock:
            _under_way.discard(self._child)

    def _why_it_ended(self, *, by_defect: bool) -> Exception:
        code = self._child.wait()
        self._log.seek(0)
        tail = self._log.read()[-_SHOWN_OF_LOG:].strip()
        return _died(self._task, code, tail, by_defect=by_defect)


def make_seed(
    task: Task,
    device: str,
    workloads: Sequence[str] | None = None,
    progress: Progress = _silent,
    minutes: float = PATIENCE_MINUTES,
    recipe: Recipe = DEFAULT,
    use_device: UseDevice = contextlib.nullcontext,
    *,
    compare: bool = True,
) -> Seed:
    """Turn the compiler's output for some workloads of a task (all by default) into a candidate.

    Raises what `SeedMaker.make` does.
    """
    maker = SeedMaker(task, device, workloads, minutes, use_device, compare=compare)
    with contextlib.closing(maker):
        return maker.make(recipe, progress)


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
    child: subprocess.Popen[str],
    request: dict[str, Any],
    progress: Progress,
    use_device: UseDevice,
) -> dict[str, Any]:
    """Send the request, and return the last message: a result, unless the process died."""
    assert child.stdin is not None and child.stdout is not None
    _send(child.stdin, json.dumps(request))
    message: dict[str, Any] = {}
    with contextlib.ExitStack() as device:
        for line in child.stdout:
            message = json.loads(line)
            if "progress" in message:
                progress(message["progress"])
            elif message.get("device"):
                device.enter_context(use_device())
                _send(child.stdin, "")
            elif "device" in message:
                device.close()
            elif "begins" not in message:
                break
    return message


def _died(task: Task, code: int, log: str, *, by_defect: bool) -> Exception:
    """Make the error for a process without a result: neither memory that ran out nor what the
    task's code does is a defect of ours."""
    if code == -signal.SIGKILL:
        what = "the compiler's process was killed (SIGKILL), as Linux does when memory runs out"
        return shortage(what, "cpu", host_room())
    if code in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP):  # as to all of a job
        name = signal.Signals(-code).name
        return Interrupted(f"somebody ended the compiler's process ({name})", hint="ask again")
    if tells_of_shortage(log):
        device = "cuda" if "cuda" in log.lower() else "cpu"
        room = host_room() if device == "cpu" else None
        return shortage(not_enough_for(f"task {task.name}", device), device, room)
    if code >= 0 and not by_defect:
        return ends_process(f"exit code {code}")
    return InternalError(f"the compiler's process ended with {code}: {log}")


def _send(pipe: IO[str], line: str) -> None:
    try:
        print(line, file=pipe, flush=True)
    except BrokenPipeError:
        return  # the process died early; its log says why


def _read(answer: dict[str, Any]) -> Seed:
    if "seed" in answer:
        return Seed.model_validate(answer["seed"])
    kind = _KINDS.get(answer["kind"])
    if kind is None:
        raise InternalError(answer["what"])
    raise kind(answer["what"], hint=answer["hint"])
