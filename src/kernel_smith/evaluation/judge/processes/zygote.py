"""The judge's hold on a zygote: starting it, asking it for processes, replacing it when it died."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.sandbox.wire import Channel, WireError
from kernel_smith.evaluation.sandbox.zygote import PATIENT_THREADS, Kind

_START_SECONDS = 120.0

Be = Callable[[Kind, int, int, Iterable[int]], None]
"""What a zygote does: see `be_zygote`."""


class Zygote:
    """Forks processes of one kind. A dead one is replaced."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        # Forking overlaps with the judge's own work, so it may use every core we have.
        self._cores = sorted(os.sched_getaffinity(0))
        self._ready = False
        self._process: subprocess.Popen[bytes] | _Copy | None = None
        self._control: Channel | None = None
        self._asking = threading.Lock()  # compilers are asked for from several threads

    @property
    def pid(self) -> int:
        self._ensure()
        assert self._process is not None
        return self._process.pid

    def fork(self, be: Be) -> None:
        """Make it a copy of this process, which has imported torch: that takes seconds, and each of
        the two would take them. Only as long as this process knows no secret and has no threads.
        """
        near, far = Channel.pair()
        judge = os.getpid()
        pid = os.fork()
        if pid == 0:
            _close_all_but(far.fileno())
            _end_after(lambda: be(self._kind, far.fileno(), judge, self._cores))
        far.close()
        self._process, self._control, self._ready = _Copy(pid), near, False

    def begin(self) -> None:
        """Start it as a program, without waiting."""
        near, far = Channel.pair()
        environment = {**os.environ, **PATIENT_THREADS}
        module = "kernel_smith.evaluation.sandbox"
        numbers = (far.fileno(), os.getpid(), *self._cores)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, self._kind, *map(str, numbers)],
            pass_fds=(far.fileno(),),
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        far.close()
        self._control = near
        self._ready = False

    def ask(self, job: dict[str, Any], fds: tuple[int, ...]) -> None:
        """Have a process forked. Does not wait: what came of it shows when it is to be ready."""
        with self._asking:
            self._ask(job, fds)

    def _ask(self, job: dict[str, Any], fds: tuple[int, ...]) -> None:
        for attempt in (1, 2):
            self._ensure()
            assert self._control is not None
            try:
                self._control.send(job, fds)
                return
            except WireError as error:
                self.stop()
                if attempt == 2:
                    raise InternalError(f"the zygote does not answer: {error}") from error

    def _ensure(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self.begin()
        if self._ready:
            return
        assert self._control is not None
        try:
            self._control.receive(_START_SECONDS)
        except WireError as error:
            self.stop()
            raise InternalError(f"the zygote did not start: {error}") from error
        self._ready = True

    def stop(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class _Copy:
    """As much of a `subprocess.Popen` as is used here, for a process that was forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _wait(self, manner: int) -> int | None:
        if self._code is None:
            ended, status = os.waitpid(self.pid, manner)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code


def _close_all_but(fd: int) -> None:
    """What else is open is for the judge alone."""
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))


def _end_after(work: Callable[[], None]) -> NoReturn:
    """Return nowhere: what the judge would do next is not for its copy."""
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)
