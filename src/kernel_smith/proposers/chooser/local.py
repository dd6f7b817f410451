"""A model on this machine as adviser: a process with torch, which reads questions line by line."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.proposers.base import WorkerFailed
from kernel_smith.proposers.chooser.adviser import Advice
from kernel_smith.proposers.chooser.letters import question_text
from kernel_smith.proposers.chooser.options import Menu
from kernel_smith.proposers.credit import speedup_of
from kernel_smith.records import Evaluation

# By its name, as one starts a program: this room imports no torch, and nothing of training.
_PROGRAM = "kernel_smith.training.choices.answering"
_SHOWN_OF_LOG = 600


class AskedLocally:
    """An `Adviser`: a folder with a model, or with an adapter that names its model. It is loaded
    when it is asked for the first time, on a GPU where there is one."""

    def __init__(self, folder: Path) -> None:
        if not any((folder / name).is_file() for name in ("config.json", "adapter_config.json")):
            raise BadInput(
                f"{folder}: neither a model nor an adapter, expected config.json or "
                "adapter_config.json",
                hint="name what `kernel-smith train chooser` wrote: OUTPUT/final/adapter",
            )
        self._folder = folder
        self._lock = threading.Lock()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        self._process: subprocess.Popen[str] | None = None

    def advise(self, menu: Menu, evaluation: Evaluation) -> Advice:
        question = {
            "prompt": question_text(menu, speedup_of(evaluation)),
            "options": len(menu.options),
        }
        with self._lock:
            answer = self._exchange(question)
        if "odds" in answer:
            return Advice(answer["odds"])
        raise self._failed(answer["what"], answer["hint"])

    def check(self) -> None:
        """Load the model now, which says what keeps it from being loaded."""
        with self._lock:
            answer = self._exchange({"prompt": "", "options": 1})
        if "odds" not in answer:
            raise BadInput(answer["what"], hint=answer["hint"])

    def close(self) -> None:
        """End the process, also in the midst of an answer."""
        if self._process is not None:
            self._process.kill()
        with self._lock:  # whoever waited for an answer has read the log by then
            if self._process is not None:
                with self._process:
                    pass
            self._log.close()

    def _exchange(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended before; its log says why
            print(json.dumps(question), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
            if line:
                answer: dict[str, Any] = json.loads(line)
                return answer
        self._log.seek(0)
        tail = self._log.read()[-_SHOWN_OF_LOG:].strip()
        what = f"{self._folder}: the model's process has ended ({self._process.wait()}): {tail}"
        return {"what": what, "hint": "see the model's folder, and whether its memory suffices"}

    def _failed(self, what: str, hint: str) -> WorkerFailed:
        """What failed once here fails again."""
        failure = WorkerFailed(what, hint=hint)
        failure.final = True
        return failure
