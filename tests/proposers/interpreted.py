"""Runs scripts whose Triton kernels are interpreted, as they are in a candidate's process.

Each has a process of its own, forked from one that has imported what all of them need: that takes
seconds. `python interpreted.py` is the process to fork from.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from kernel_smith.records import Task

# A model and its reference, called once; the judge would call them many times, and this is slow.
COMPARED = """
import torch
reference, candidate = {}, {}
exec(open("task.py").read(), reference)
exec(compile(open("candidate.py").read(), "candidate.py", "exec"), candidate)
model, ours = reference["Model"](), candidate["ModelNew"]()
ours.load_state_dict(model.state_dict())
inputs = reference["get_inputs"]()
with torch.no_grad():
    pairs = list(zip(ours(*inputs), model(*inputs), strict=True))
for found, expected in pairs:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
print(len(pairs), "agree")
"""


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Interpreter:
    """The process that scripts are forked from; close it in the end."""

    def __init__(self) -> None:
        command = [sys.executable, __file__]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def run(self, script: str, folder: Path, given: str = "") -> Done:
        """Run a script in a folder, with a text for its standard input."""
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"script": script, "folder": str(folder), "given": given}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return Done(**json.loads(self._process.stdout.readline()))

    def compare(self, task: Task, source: str, folder: Path) -> str:
        """Run a program and its task's reference; return how many results agree, or what is wrong.

        The reference returns a tuple of tensors.
        """
        (folder / "task.py").write_text(task.source)
        (folder / "candidate.py").write_text(source)
        done = self.run(COMPARED, folder)
        return done.stdout.strip() or done.stderr

    def close(self) -> None:
        with self._process:
            pass


def _serve() -> None:
    """Fork a process for each request on stdin, and answer when it has ended."""
    from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels

    interpret_kernels(disarmed=False)
    importlib.import_module("torch._inductor.runtime.triton_helpers")
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    file = tempfile.TemporaryFile
    with file("w+") as given, file("w+") as said, file("w+") as complaints:
        given.write(request["given"])
        given.seek(0)
        pid = os.fork()
        if pid == 0:
            _run(request, given, said, complaints)
        _, status = os.waitpid(pid, 0)
        for text in (said, complaints):
            text.seek(0)
        code = os.waitstatus_to_exitcode(status)
        return {"returncode": code, "stdout": said.read(), "stderr": complaints.read()}


def _run(request: dict[str, Any], *files: IO[str]) -> NoReturn:
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin = files[0]
        os.chdir(request["folder"])
        exec(request["script"], {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
