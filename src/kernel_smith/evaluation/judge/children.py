"""The judge's hold on its child processes: starting them, asking them, ending them.

A child's answer is never a verdict. Whatever goes wrong with one becomes a `ChildFailed` that says
which boundary failed; the judge turns it into a stage and a reason.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.sandbox.confine import Policy, default_readable
from kernel_smith.evaluation.sandbox.wire import Channel, WireClosed, WireError, WireTimeout
from kernel_smith.records import Confinement, Limits

_LOG_TAIL = 6000
_START_SECONDS = 120.0
_GRACE_SECONDS = 5.0
_CPU_SECONDS = 3600
_COMPILER_LOG = 64 << 10

FailureKind = Literal["exception", "signature", "memory", "timeout", "died", "protocol"]


class Interrupted(Exception):
    """A trusted process failed, which is nobody's verdict. The evaluation is repeated."""


class ChildFailed(Exception):
    """An untrusted process did not do what it was asked."""

    def __init__(self, kind: FailureKind, message: str, log: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.log = log


@dataclass(frozen=True)
class Place:
    """Which cores belong to timed work, and which to the judge and its compilers."""

    timed: frozenset[int]
    judge: frozenset[int]

    @classmethod
    def choose(cls, cores: tuple[int, ...] | None) -> Place:
        """All but one core for timed work, so that the judge never competes with what it times."""
        allowed = sorted(os.sched_getaffinity(0))
        timed = frozenset(cores) & frozenset(allowed) if cores else frozenset(allowed[1:])
        timed = timed or frozenset(allowed)
        return cls(timed, frozenset(allowed) - timed or frozenset(allowed))


class Nursery:
    """Owns the zygote; its children work below `folder`. A dead zygote is replaced."""

    def __init__(self, folder: Path, cores: frozenset[int]) -> None:
        self.folder = folder
        self._cores = cores
        self.folder.chmod(0o711)
        self._count = 0
        self._readable: tuple[Path, ...] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Channel | None = None

    @property
    def zygote_pid(self) -> int:
        self._ensure_zygote()
        assert self._process is not None
        return self._process.pid

    def new_folder(self, name: str, mode: int = 0o755) -> Path:
        self._count += 1
        path = self.folder / f"{name}-{self._count}-{os.urandom(4).hex()}"
        path.mkdir()
        path.chmod(mode)
        return path

    def start(
        self,
        place: Place,
        limits: Limits,
        *,
        readable: tuple[Path, ...] = (),
        confined: bool = True,
        trusted: bool = False,
        allow_exec: bool = False,
        shared_bytes: int = 0,
    ) -> Child:
        """Fork a child that runs a candidate's or (`trusted`) a reference's code.

        Returns at once; the child makes itself ready while the judge does other things.
        """
        policy = self._policy(limits, place.timed, readable, allow_exec=allow_exec)
        child = self._spawn(policy, place, confined=confined, shared_bytes=shared_bytes)
        child.trusted = trusted
        return child

    def run_program(
        self,
        place: Place,
        limits: Limits,
        argv: list[str],
        files: dict[str, str],
        product: str,
        target: Path,
        timeout: float,
    ) -> tuple[int | None, str]:
        """Run a compiler, confined, on files of its own; its product is copied to `target`.

        Returns its exit status, None if it had to be stopped, and the end of what it printed.
        """
        policy = self._policy(limits, place.judge, (), allow_exec=True)
        with target.open("wb") as product_file:
            child = self._spawn(
                policy, place, argv=argv, files=files, product=product, into=product_file.fileno()
            )
        try:
            code = child.wait(timeout)
            return code, child.read_log(_COMPILER_LOG)
        finally:
            child.close()

    def _policy(
        self, limits: Limits, cores: frozenset[int], readable: tuple[Path, ...], *, allow_exec: bool
    ) -> Policy:
        if self._readable is None:
            self._readable = default_readable()
        return Policy(
            scratch=self.new_folder("scratch", 0o777),
            readable=(*self._readable, *readable),
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            cpu_seconds=_CPU_SECONDS,
            file_bytes=limits.scratch_bytes,
            scratch_bytes=limits.scratch_bytes,
            cores=cores,
            allow_exec=allow_exec,
        )

    def _spawn(
        self,
        policy: Policy,
        place: Place,
        *,
        confined: bool = True,
        shared_bytes: int = 0,
        argv: Sequence[str] = (),
        files: Mapping[str, str] = MappingProxyType({}),
        product: str = "",
        into: int | None = None,
    ) -> Child:
        job = {
            "policy": _jsonable(policy),
            "confined": confined,
            "shared_bytes": shared_bytes,
            "argv": list(argv),
            "files": dict(files),
            "product": product,
            "judge_cores": sorted(place.judge),
        }
        channel, far_channel = Channel.pair()
        status, far_status = Channel.pair()
        log = os.memfd_create("kernel-smith-log", os.MFD_CLOEXEC)
        fds = (far_channel.fileno(), far_status.fileno(), log, log if into is None else into)
        self._ask_zygote(job, fds)
        far_channel.close()
        far_status.close()
        return Child(channel, status, log, policy.scratch)

    def _ask_zygote(self, job: dict[str, Any], fds: tuple[int, ...]) -> None:
        for attempt in (1, 2):
            self._ensure_zygote()
            assert self._control is not None
            try:
                self._control.send(job, fds)
                self._control.receive(_GRACE_SECONDS)
                return
            except WireError as error:
                self._stop_zygote()
                if attempt == 2:
                    raise InternalError(f"the zygote does not answer: {error}") from error

    def _ensure_zygote(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._stop_zygote()
        near, far = Channel.pair()
        environment = dict(os.environ)
        # Idle OpenMP threads give the core back at once; spinning would look like hidden work.
        environment |= {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
        module = "kernel_smith.evaluation.sandbox.zygote"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(far.fileno()), *map(str, sorted(self._cores))],
            pass_fds=(far.fileno(),),
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        far.close()
        self._control = near
        try:
            near.receive(_START_SECONDS)
        except WireError as error:
            self._stop_zygote()
            raise InternalError(f"the zygote did not start: {error}") from error

    def _stop_zygote(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self._stop_zygote()


class Child:
    """One process, from fork to exit."""

    def __init__(self, channel: Channel, status: Channel, log: int, scratch: Path) -> None:
        self._channel = channel
        self._status = status
        self._log = log
        self.scratch = scratch
        self._exit: dict[str, Any] | None = None
        self._status_closed = False
        self._pidfd = -1
        self._cpu_clock = 0
        self.pid = -1
        self.trusted = False
        self.confinement = Confinement()
        self.provide: Callable[[dict[str, Any]], dict[str, Any]] | None = None

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

    def cpu_seconds(self) -> float:
        """Processor time of all threads so far, by the operating system's books."""
        try:
            return time.clock_gettime_ns(self._cpu_clock) / 1e9
        except OSError:
            return 0.0

    def post(self, op: str, *, fds: tuple[int, ...] = (), **arguments: Any) -> None:
        """Send a request without waiting for the answer."""
        self.ready()
        try:
            self._channel.send({"op": op, **arguments}, fds)
        except WireClosed:
            self._raise_death(op)

    def answer(self, op: str, timeout: float) -> dict[str, Any]:
        """Wait for the answer, serving the child's requests for compiled objects meanwhile."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                message = self._channel.receive(max(deadline - time.monotonic(), 0.001))
            except WireTimeout:
                log = self.read_log()
                self.kill()
                raise self._failure("timeout", f"no answer within {timeout:g} s", log) from None
            except WireClosed:
                self._raise_death(op)
            except WireError as error:
                self.kill()
                raise self._failure("protocol", str(error), self.read_log()) from None
            if "need" in message and self.provide is not None:
                self._channel.send(self.provide(message["need"]))
            elif "error" in message:
                raise self._reported(message["error"])
            else:
                return message

    def ask(
        self, op: str, timeout: float, *, fds: tuple[int, ...] = (), **arguments: Any
    ) -> dict[str, Any]:
        self.post(op, fds=fds, **arguments)
        return self.answer(op, timeout)

    def _failure(self, kind: FailureKind, message: str, log: str) -> Exception:
        if self.trusted:
            return Interrupted(f"a trusted process failed ({kind}): {message}\n{log}")
        return ChildFailed(kind, message, log)

    def _reported(self, error: Any) -> Exception:
        """What the child says about its own failure."""
        if not isinstance(error, dict):
            return self._failure("protocol", "malformed error report", self.read_log())
        kind: FailureKind = "exception"
        if error.get("kind") in ("signature", "memory"):
            kind = error["kind"]
        log = f"{error.get('traceback', '')}\n{self.read_log()}".strip()
        return self._failure(kind, str(error.get("message", "")), log)

    def _raise_death(self, op: str) -> NoReturn:
        report = self.exit_report()
        log = self.read_log()
        code = report.get("exited")
        if not isinstance(code, int):
            # No candidate can end its warden: something else did, or the zygote was killed.
            raise Interrupted(f"a warden ended without a word during {op}")
        if report.get("exceeded"):
            raise self._failure("memory", str(report["exceeded"]), log)
        ending = f"exited with status {code}"
        if code < 0:
            known = {member.value: member.name for member in signal.Signals}
            ending = f"killed by {known.get(-code, f'signal {-code}')}"
        raise self._failure("died", f"{ending} during {op}", log)

    def alive(self) -> bool:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return not poller.poll(0)

    def exit_report(self, timeout: float = _GRACE_SECONDS) -> dict[str, Any]:
        """How the child ended, in the warden's words; a warden that is gone knows nothing."""
        if self._exit is None:
            try:
                self._exit = self._status.receive(timeout)
            except WireError:
                self._exit = {}
        return self._exit

    def wait(self, timeout: float) -> int | None:
        """The exit status of a child that was started to run a program; None on timeout."""
        self.ready()
        poller = select.poll()
        poller.register(self._status.fileno(), select.POLLIN)
        if not poller.poll(timeout * 1000):
            return None
        code = self.exit_report().get("exited")
        return code if isinstance(code, int) else -1

    def read_log(self, tail: int = _LOG_TAIL) -> str:
        """The end of what the child wrote to stdout and stderr."""
        size = os.fstat(self._log).st_size
        data = os.pread(self._log, tail, max(size - tail, 0))
        return data.decode(errors="replace").strip()

    def kill(self) -> None:
        if self._exit is None and not self._status_closed:
            with contextlib.suppress(Interrupted):
                self.ready()
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                self.exit_report()

    def close(self) -> None:
        self.kill()
        self._status_closed = True
        self._channel.close()
        self._status.close()
        for fd in (self._log, self._pidfd):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._log = self._pidfd = -1
        shutil.rmtree(self.scratch, ignore_errors=True)


def _jsonable(policy: Policy) -> dict[str, Any]:
    fields = dict(vars(policy))
    fields["scratch"] = str(policy.scratch)
    fields["readable"] = [str(path) for path in policy.readable]
    fields["cores"] = sorted(policy.cores)
    return fields
