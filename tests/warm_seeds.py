"""Seeds' processes that are forked from one in which PyTorch's compiler is imported already.

That import takes most of what a small seed takes, and many tests make one. What runs in the
process is what always runs there. `python warm_seeds.py FD` is the process to fork from.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from types import TracebackType
from typing import IO, Any, NoReturn

from kernel_smith.inline.triton_key import know_triton_by_its_date

_PRELOADED = (
    "kernel_smith.proposers.seed.inside.build",
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.triton",
)


class Seeds:
    """`start(log)` in place of that of `kernel_smith.proposers.seed.make`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()  # runs may begin side by side

    def start(self, log: IO[str]) -> ForkedSeed:
        with self._lock:
            if self._control is None:
                self._control, far = socket.socketpair()
                command = [sys.executable, __file__, str(far.fileno())]
                self._process = subprocess.Popen(command, pass_fds=(far.fileno(),))
                far.close()
            return ForkedSeed(self._control, log)

    def close(self) -> None:
        if self._control is not None and self._process is not None:
            self._control.close()
            self._process.wait()


class ForkedSeed:
    """As much of a `subprocess.Popen` as `make_seed` uses."""

    def __init__(self, control: socket.socket, log: IO[str]) -> None:
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        status, theirs_status = os.pipe()
        theirs = [theirs_in, theirs_out, log.fileno(), theirs_status]
        there = {"environment": dict(os.environ), "folder": os.getcwd()}
        message = json.dumps(there).encode()
        control.sendall(len(message).to_bytes(4, "big"))
        socket.send_fds(control, [message], theirs)
        for fd in (theirs_in, theirs_out, theirs_status):
            os.close(fd)
        self.stdin, self.stdout = os.fdopen(stdin, "w"), os.fdopen(stdout)
        self._status = os.fdopen(status)
        self.returncode: int | None = None
        self._pid = int(self._status.readline())

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self._status.readline())
        return self.returncode

    def __enter__(self) -> ForkedSeed:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stdin.close()
        self.stdout.close()
        self.wait()
        self._status.close()


def _serve(control: socket.socket) -> None:
    """Fork a process that forks and waits for one that makes a seed, for each request."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    know_triton_by_its_date()
    gc.disable()  # as where seeds are made by themselves
    for module in _PRELOADED:
        importlib.import_module(module)
    gc.freeze()
    while size := control.recv(4, socket.MSG_WAITALL):
        length = int.from_bytes(size, "big")
        text, fds, _, _ = socket.recv_fds(control, length, 4)
        while len(text) < length:
            text += control.recv(length - len(text))
        if os.fork() == 0:
            control.close()
            _wait_for_seed(json.loads(text), *fds)
        for fd in fds:
            os.close(fd)


def _wait_for_seed(there: dict[str, Any], stdin: int, stdout: int, log: int, out: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _make_seed(there, stdin, stdout, log)
    for fd in (stdin, stdout, log):
        os.close(fd)
    os.write(out, b"%d\n" % pid)
    _, code = os.waitpid(pid, 0)
    os.write(out, b"%d\n" % os.waitstatus_to_exitcode(code))
    os._exit(0)


def _make_seed(there: dict[str, Any], *fds: int) -> NoReturn:
    code = 1
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(there["environment"])
        os.chdir(there["folder"])
        from kernel_smith.proposers.seed.inside.__main__ import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        _serve(given)
