"""The judge's hold on one process: asking it, noticing how it fails, ending it.

A child's answer is never a verdict. Whatever goes wrong with one becomes a `ChildFailed` that says
which boundary failed; the judge turns it into a stage and a reason.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn

from kernel_smith.evaluation.sandbox.triton_tools import COMPILED, COMPILING
from kernel_smith.evaluation.sandbox.wire import Channel, WireClosed, WireError, WireTimeout
from kernel_smith.records import Confinement

_LOG_TAIL = 6000
_LONGEST_REPORT = 8000
_START_SECONDS = 60.0
_GRACE_SECONDS = 5.0
_COMPILING_SECONDS = 180.0  # that compiling may add to the time for one answer, at most

_STILL_SECONDS = 20.0  # usually microseconds; longer where pages are read back from a disk
_LOOK_SECONDS = 1e-4
_STANDING = frozenset("TtZX")  # stopped, traced or dead, as proc(5) has it

_BRINGS_DESCRIPTORS = frozenset({"chunks"})

FailureKind = Literal[
    "exception",
    "signature",
    "memory",
    "compiler",
    "resources",
    "timeout",
    "died",
    "protocol",
]
_REPORTED = ("signature", "memory", "compiler", "resources")


class Interrupted(Exception):
    """A trusted process failed, which is nobody's verdict. The evaluation is repeated.

    `raised`: the exception of the reference's own code there, if it was one.
    """

    def __init__(self, what: str, raised: str | None = None) -> None:
        super().__init__(what)
        self.raised = raised


class ChildFailed(Exception):
    """An untrusted process did not do what it was asked."""

    def __init__(self, kind: FailureKind, message: str, log: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.log = log


class _Patience:
    """Until when an answer is waited for.

    The time that compiling takes is given back to the child, within limits: it may ask often, and
    say that it compiles when it does not.
    """

    def __init__(self, seconds: float, compile_seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._latest = self._deadline + _COMPILING_SECONDS
        self._compile_seconds = compile_seconds
        self._compiling_since: float | None = None

    def left(self) -> float:
        until = self._deadline
        if self._compiling_since is not None:
            until = max(until, self._compiling_since + self._compile_seconds)
        return min(until, self._latest) - time.monotonic()

    def served(self, need: object, asked: float) -> None:
        """Note that the child now has what it asked for at that moment."""
        if need == COMPILED and self._compiling_since is not None:
            asked, self._compiling_since = self._compiling_since, None
        if self._compiling_since is None:  # else all of it is given back in the end
            self._deadline += time.monotonic() - asked
        if need == COMPILING:
            self._compiling_since = time.monotonic()


class Child:
    """One process, from fork to exit."""

    def __init__(self, channel: Channel, status: Channel, log: int, scratch: Path) -> None:
        self._channel = channel
        self._status = status
        self._log = log
        self.scratch = scratch
        self._exit: dict[str, Any] | None = None
        self._monitor_gone = False
        self._descriptors: list[int] = []
        self._ended = False
        self._pidfd = -1
        self._cpu_clock = 0
        self.pid = -1
        self.trusted = False
        self.confinement = Confinement()
        self.provide: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.compile_seconds = 0.0  # for each time that it says that it compiles by itself

    def ready(self) -> None:
        """Wait until the process is confined. Nothing of the candidate has run until then."""
        if self.pid > 0:
            return
        try:
            self.pid = int(self._status.receive(_START_SECONDS)["child"])
            self._pidfd = os.pidfd_open(self.pid)
            report = self._channel.receive(_START_SECONDS)
            self.confinement = Confinement(enforced=report["enforced"], missing=report["missing"])
        except (WireError, KeyError, OSError) as error:
            raise Interrupted(f"a child process did not start: {error!r}") from error
        # The process-wide CPU clock of another process, as clock_getcpuclockid(3) computes it.
        self._cpu_clock = (~self.pid << 3) | 2

    def move_to(self, cores: Collection[int]) -> None:
        """Have all of its threads run there. The process itself has no say in it."""
        with contextlib.suppress(OSError):  # it has ended, as whoever asks it next will learn
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with contextlib.suppress(OSError):  # it ended, or is not ours to move
                    os.sched_setaffinity(int(thread), cores)

    def cpu_seconds(self) -> float:
        """Processor time of all threads so far, by the operating system's books."""
        try:
            return time.clock_gettime_ns(self._cpu_clock) / 1e9
        except OSError:
            return 0.0

    def post(self, op: str, *, fds: tuple[int, ...] = (), **arguments: Any) -> None:
        """Send a request without waiting for the answer."""
        self.ready()
        self._send(op, {"op": op, **arguments}, fds)

    def _send(self, op: str, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        try:
            self._channel.send(message, fds)
        except WireTimeout:
            self.kill()
            raise self._failure("timeout", "it does not read requests", self.read_log()) from None
        except WireClosed:
            self._raise_death(op)

    def answer(self, op: str, timeout: float) -> dict[str, Any]:
        """Wait for the answer, serving the child's requests for compiled objects meanwhile."""
        patience = _Patience(timeout, self.compile_seconds)
        while True:
            try:
                # Past the deadline nothing is read any more, however much is waiting.
                message, fds = self._channel.receive_with_fds(patience.left())
            except WireTimeout:
                log = self.read_log()
                self.kill()
                raise self._failure("timeout", f"no answer within {timeout:g} s", log) from None
            except WireClosed:
                self._raise_death(op)
            except WireError as error:
                self.kill()
                raise self._failure("protocol", str(error), self.read_log()) from None
            if op not in _BRINGS_DESCRIPTORS or "need" in message or "error" in message:
                _close_all(fds)
            if "need" in message and self.provide is not None:
                asked = time.monotonic()
                self._send(op, self.provide(message["need"]))
                patience.served(message["need"], asked)
            elif "error" in message:
                raise self._reported(message["error"])
            else:
                self._descriptors = fds
                return message

    def has_said_something(self) -> bool:
        """Has an answer come, a question, or the end?"""
        poller = select.poll()
        poller.register(self._channel.fileno(), select.POLLIN)
        return bool(poller.poll(0))

    def ask(
        self, op: str, timeout: float, *, fds: tuple[int, ...] = (), **arguments: Any
    ) -> dict[str, Any]:
        self.post(op, fds=fds, **arguments)
        return self.answer(op, timeout)

    def ask_for_descriptors(
        self, op: str, timeout: float, **arguments: Any
    ) -> tuple[dict[str, Any], list[int]]:
        """The answer, and the descriptors that came with it: the caller closes them."""
        answer = self.ask(op, timeout, **arguments)
        descriptors, self._descriptors = self._descriptors, []
        return answer, descriptors

    def _failure(self, kind: FailureKind, message: str, log: str) -> Exception:
        if self.trusted:
            raised = message if kind == "exception" else None
            return Interrupted(f"a trusted process failed ({kind}): {message}\n{log}", raised)
        return ChildFailed(kind, message, log)

    def _reported(self, error: Any) -> Exception:
        """What the child says about its own failure."""
        if not isinstance(error, dict):
            return self._failure("protocol", "malformed error report", self.read_log())
        kind: FailureKind = "exception"
        if error.get("kind") in _REPORTED:
            kind = error["kind"]
        log = f"{_text(error.get('traceback', ''))}\n{self.read_log()}".strip()
        return self._failure(kind, _text(error.get("message", "")), log)

    def _raise_death(self, op: str) -> NoReturn:
        report = self.exit_report()
        log = self.read_log()
        code = report.get("exited")
        if not isinstance(code, int):
            if self._monitor_gone or "failed" in report or not self.alive():
                raise self._monitor_ended(op)
            self.kill()
            raise self._failure("protocol", f"closed the connection during {op}", log)
        if report.get("exceeded"):
            raise self._failure("memory", str(report["exceeded"]), log)
        ending = f"exited with status {code}"
        if code < 0:
            known = {member.value: member.name for member in signal.Signals}
            ending = f"killed by {known.get(-code, f'signal {-code}')}"
        raise self._failure("died", f"{ending} during {op}", log)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Keep all of the process's threads from running meanwhile."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """The same, and not before all of them have stopped: one that is in the operating system's
        hands, for gigabytes of fresh memory, say, takes up a core until it comes back."""
        with self.stopped():
            deadline = time.monotonic() + _STILL_SECONDS
            while not self._stands_still():
                if time.monotonic() > deadline:
                    raise self._failure("timeout", "a thread does not stop", self.read_log())
                time.sleep(_LOOK_SECONDS)
            yield

    def _stands_still(self) -> bool:
        try:
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                    state = Path(f"/proc/{self.pid}/task/{thread}/stat").read_text()
                    if state.rpartition(")")[2].split()[0] not in _STANDING:
                        return False
        except OSError:  # the process has ended, as whoever asks it next will learn
            return True
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def alive(self) -> bool:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return not poller.poll(0)

    def exit_report(self, timeout: float = _GRACE_SECONDS) -> dict[str, Any]:
        """How the child ended, in the monitor's words; a monitor that is gone knows nothing."""
        if self._exit is None:
            try:
                self._exit = self._status.receive(timeout)
            except WireError as error:
                self._exit = {}
                self._monitor_gone = isinstance(error, WireClosed)
        return self._exit

    def wait(self, timeout: float) -> int | None:
        """The exit status of a child that was started to run a program; None on timeout."""
        self.ready()
        poller = select.poll()
        poller.register(self._status.fileno(), select.POLLIN)
        if not poller.poll(timeout * 1000):
            return None
        code = self.exit_report().get("exited")
        if not isinstance(code, int):
            raise self._monitor_ended("the run of a program")
        return code

    def _monitor_ended(self, op: str) -> Interrupted:
        """No candidate can end its monitor: something else did, or the zygote was killed."""
        reason = self.exit_report().get("failed")
        how = f"failed ({reason})" if reason else "ended without a word"
        return Interrupted(f"a monitor {how} during {op}")

    def read_log(self, tail: int = _LOG_TAIL) -> str:
        """The end of what the child wrote to stdout and stderr."""
        size = os.fstat(self._log).st_size
        data = os.pread(self._log, tail, max(size - tail, 0))
        return data.decode(errors="replace").strip()

    def kill(self) -> None:
        """End the process and everything it started. Does not wait for the end."""
        if self._ended:
            return
        with contextlib.suppress(Interrupted, OSError):  # it may be gone, or have never been there
            self.ready()
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self._ended = True
        self._channel.close()

    def bury(self) -> None:
        """Wait for the end and clear away what is left. Slow enough to be done when idle."""
        self.kill()
        self.exit_report()
        self._status.close()
        for fd in (self._log, self._pidfd):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._log = self._pidfd = -1
        shutil.rmtree(self.scratch, ignore_errors=True)


def _close_all(descriptors: list[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _text(reported: Any) -> str:
    """Text from an untrusted process, made fit for a record: short, and real characters."""
    return str(reported)[:_LONGEST_REPORT].encode(errors="replace").decode()
