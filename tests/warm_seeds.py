"""Processes that are forked from one in which PyTorch's compiler is imported already: seeds', and
those of tests that are shipped.

That import takes most of what a small seed takes, and many tests make one. What runs in the
process is what always runs there. `python warm_seeds.py FD PID` is the process to fork from, one
for all workers of a test run: it listens on the socket FD until the process PID ends.
"""

from __future__ import annotations

import errno
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from pathlib import Path
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
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
        self._until = os.getpid() if run is None else os.getppid()
        self._address = f"\0kernel-smith-seeds-{run or self._until}"  # of no file

    def start(self, log: IO[str]) -> ForkedSeed:
        return self._fork(log, {"environment": dict(os.environ), "folder": os.getcwd()})

    def run_pytest(self, arguments: list[str], folder: Path, **environment: str) -> str:
        """Do as `python -m pytest` does in a folder, and return what it prints."""
        there = {
            "environment": {**os.environ, **environment},
            "folder": str(folder),
            "tests": arguments,
        }
        with tempfile.TemporaryFile("w") as log, self._fork(log, there) as forked:
            return forked.stdout.read()

    def _fork(self, log: IO[str], there: dict[str, Any]) -> ForkedSeed:
        while True:
            self._begin()
            with socket.socket(socket.AF_UNIX) as control:
                try:
                    control.connect(self._address)
                except ConnectionRefusedError:  # who has just bound it does not listen yet
                    continue
                return ForkedSeed(control, log, there)

    def _begin(self) -> None:
        """Start the process, unless another worker or thread has done so."""
        with socket.socket(socket.AF_UNIX) as listening:
            try:
                listening.bind(self._address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                return
            listening.listen()
            listening.set_inheritable(True)
            command = [sys.executable, __file__, str(listening.fileno()), str(self._until)]
            os.posix_spawn(sys.executable, command, os.environ)


class ForkedSeed:
    """As much of a `subprocess.Popen` as `make_seed` uses."""

    def __init__(self, control: socket.socket, log: IO[str], there: dict[str, Any]) -> None:
        theirs_in, stdin = os.pipe()
        stdout, theirs_out = os.pipe()
        status, theirs_status = os.pipe()
        theirs = [theirs_in, theirs_out, log.fileno(), theirs_status]
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


def _serve(listening: socket.socket, until: int) -> None:
    """Fork a process that forks and waits for one that does the work, for each request."""
    ended = os.pidfd_open(until)
    os.sched_setaffinity(0, os.sched_getaffinity(until))  # which may be more than the worker has
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    know_triton_by_its_date()
    gc.disable()  # as where seeds are made by themselves
    for module in _PRELOADED:
        importlib.import_module(module)
    gc.freeze()
    while ended not in select.select([listening, ended], [], [])[0]:
        control, _ = listening.accept()
        with control:
            length = int.from_bytes(control.recv(4, socket.MSG_WAITALL), "big")
            text, fds, _, _ = socket.recv_fds(control, length, 4)
            while len(text) < length:
                text += control.recv(length - len(text))
        if os.fork() == 0:
            listening.close()
            _wait_for_work(json.loads(text), *fds)
        for fd in fds:
            os.close(fd)


def _wait_for_work(there: dict[str, Any], stdin: int, stdout: int, log: int, out: int) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(out)
        _work(there, stdin, stdout, log)
    for fd in (stdin, stdout, log):
        os.close(fd)
    os.write(out, b"%d\n" % pid)
    _, code = os.waitpid(pid, 0)
    os.write(out, b"%d\n" % os.waitstatus_to_exitcode(code))
    os._exit(0)


def _work(there: dict[str, Any], *fds: int) -> NoReturn:
    code = 1
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.environ.clear()
        os.environ.update(there["environment"])
        os.chdir(there["folder"])
        code = _run_pytest(there["tests"]) if "tests" in there else _make_seed()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_pytest(arguments: list[str]) -> int:
    import pytest

    sys.path[0] = os.getcwd()
    return int(pytest.main(arguments))


def _make_seed() -> int:
    from kernel_smith.proposers.seed.inside.__main__ import main

    main()
    return 0


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        _serve(given, int(sys.argv[2]))
