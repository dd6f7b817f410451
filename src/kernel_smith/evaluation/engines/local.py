"""Evaluations on this machine: one judge process, restarted when it dies.

The engine belongs to the control plane and does not import torch. It gives up on a candidate only
after the judge died twice in a row under it; no candidate should be able to bring that about.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from kernel_smith.errors import (
    BadInput,
    InternalError,
    MissingPrerequisite,
    NotAdmitted,
    NotEnoughMemory,
    TookTooLong,
    UserError,
)
from kernel_smith.evaluation.engines.cache import EvaluationCache
from kernel_smith.evaluation.sandbox.wire import Channel, WireError
from kernel_smith.records import Admission, Candidate, Evaluation, Options, Sweep, Task

Progress = Callable[[str], None]

_ATTEMPTS = 3
_STOP_SECONDS = 5.0
_REMOVE_SECONDS = 2.0


def _silent(what: str) -> None:
    """The default audience for progress."""


class LocalEngine:
    """`with LocalEngine() as engine: engine.evaluate(task, candidate)`."""

    def __init__(self, cache: EvaluationCache | None = None) -> None:
        self._cache = cache
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._folder = ""
        self._abandoned = False

    def evaluate(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
        fresh: bool = False,
        progress: Progress = _silent,
        patience: float | None = None,
    ) -> Evaluation:
        """Evaluate one candidate; an earlier answer is returned unless `fresh`.

        After `patience` seconds the engine is given up, with `TookTooLong`.
        """
        options = options or Options()
        if self._cache is not None and not fresh:
            known = self._cache.get(task, candidate, options, beside)
            if known is not None:
                return known
        request = {
            "op": "evaluate",
            "task": task.model_dump(mode="json"),
            "candidate": candidate.model_dump(mode="json"),
            "options": options.model_dump(mode="json"),
            "beside": beside.model_dump(mode="json") if beside is not None else None,
        }
        with self._within(patience, task, "the evaluation"):
            answer = self._ask(request, progress)
        evaluation = Evaluation.model_validate(answer["evaluation"])
        if self._cache is not None:
            self._cache.put(task, candidate, options, evaluation, beside)
        return evaluation

    def sweep(
        self,
        task: Task,
        parent: Candidate,
        variants: Sequence[str],
        options: Options,
        seconds: float,
        progress: Progress = _silent,
        *,
        everybody: bool = False,
    ) -> Sweep:
        """Try variants of an accepted program out, by their sources, within so many seconds.

        `everybody`: find out what each is worth, and not just which are the fastest.
        """
        request = {
            "op": "sweep",
            "task": task.model_dump(mode="json"),
            "parent": parent.model_dump(mode="json"),
            "variants": list(variants),
            "options": options.model_dump(mode="json"),
            "seconds": seconds,
            "everybody": everybody,
        }
        return Sweep.model_validate(self._ask(request, progress)["sweep"])

    def examine(
        self, task: Task, progress: Progress = _silent, *, patience: float | None = None
    ) -> list[tuple[str, Admission]]:
        """Admission findings: pairs of workload and finding.

        After `patience` seconds the engine is given up, with `TookTooLong`.
        """
        with self._within(patience, task, "examining the reference"):
            answer = self._ask({"op": "examine", "task": task.model_dump(mode="json")}, progress)
        return [(f["workload"], Admission(f["finding"])) for f in answer["found"]]

    @contextlib.contextmanager
    def _within(self, patience: float | None, task: Task, what: str) -> Iterator[None]:
        """Give the engine up, with `TookTooLong`, if something is not done after `patience`."""
        timer = threading.Timer(patience or 0.0, self.abandon)
        if patience is not None:
            timer.start()
        try:
            yield
        except InternalError:
            if patience is None or not self._abandoned:
                raise
            raise TookTooLong(
                f"{task.path or task.name}: {what} did not end within {patience:g} s",
                hint="see whether Model.forward and get_inputs return, or allow more time: "
                f"--patience {10 * patience:g}",
            ) from None
        finally:
            timer.cancel()

    def process_ids(self) -> dict[str, int]:
        """The trusted processes behind this engine, by role."""
        answer = self._ask({"op": "processes"}, _silent)
        return {role: int(answer[role]) for role in ("judge", "zygote")}

    def _ask(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        failure: Exception | None = None
        for _ in range(_ATTEMPTS):
            if self._abandoned:
                break
            channel = self._ensure_judge()
            if self._abandoned:  # meanwhile
                break
            try:
                channel.send(request)
                while True:
                    message = channel.receive()
                    if message["event"] == "progress":
                        progress(str(message["what"]))
                    elif message["event"] == "error":
                        raise _error(message)
                    else:
                        return message
            except WireError as error:
                failure = error
                self._stop()
        if self._abandoned:
            raise InternalError("the question was abandoned")
        task = request.get("task", {})
        raise InternalError(
            f"the judge's process died {_ATTEMPTS} times in a row",
            hint="it runs references itself: see whether Model and get_inputs of "
            f"{task.get('path') or task.get('name')} run by themselves, and whether memory "
            "suffices; else please report it with the output of `kernel-smith doctor --json`",
        ) from failure

    def _ensure_judge(self) -> Channel:
        if self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._channel is None:
            near, far = Channel.pair()
            self._folder = tempfile.mkdtemp(prefix="kernel-smith-")
            module = "kernel_smith.evaluation.judge"
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(far.fileno()), self._folder],
                pass_fds=(far.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                # Ctrl-C at a terminal is for the one who asked, who then ends this process.
                process_group=0,
            )
            far.close()
            self._channel = near
        return self._channel

    def _stop(self, patience: float = _STOP_SECONDS) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
            # The engine removes it, since a killed judge cannot.
            _remove(self._folder)

    def close(self) -> None:
        self._stop(0 if self._abandoned else _STOP_SECONDS)

    def abandon(self) -> None:
        """Have another thread's question fail now, instead of waiting for its answer."""
        self._abandoned = True
        if (process := self._process) is not None:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Whoever leaves in a hurry need not wait for an answer that nobody will read.
        with contextlib.suppress(Exception):
            self._stop(_STOP_SECONDS if error is None else 0)


def _remove(folder: str) -> None:
    """The children of a killed judge may write to it for another moment."""
    deadline = time.monotonic() + _REMOVE_SECONDS
    while os.path.exists(folder) and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.01)


def _error(message: dict[str, Any]) -> Exception:
    kinds: tuple[type[UserError], ...]
    kinds = (BadInput, MissingPrerequisite, NotAdmitted, NotEnoughMemory)
    kind = {each.__name__: each for each in kinds}.get(str(message.get("kind")))
    if kind is None:
        return InternalError(str(message.get("what")))
    return kind(str(message["what"]), hint=str(message["hint"]))
