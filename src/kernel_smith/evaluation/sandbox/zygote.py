"""The warm process that children are forked from.

Importing torch takes seconds; forking a process that has it takes milliseconds. So one process
imports everything once, never runs candidate code itself, never starts a thread or opens a device,
and forks on request. Compilers need no torch, and a small process forks faster than a large one:
they come from a second zygote without it. Each request makes two processes:

    zygote ── monitor (trusted: enters namespaces, watches memory, reports the exit)
                 └── child (confined: runs one candidate, one reference, or one compiler)

The monitor dies with the zygote and the child with the monitor, so killing any of them leaves
nothing behind.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import shutil
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from kernel_smith.evaluation.sandbox.confine import (
    Policy,
    Report,
    Watch,
    confine,
    die_with_parent,
    enter_namespaces,
    usage,
)
from kernel_smith.evaluation.sandbox.wire import Channel, WireClosed

_WATCH_SECONDS = 0.02
_SETUP_FAILED = 97
_NOT_RUN = 127  # as shells have it

# Idle OpenMP threads give the core back at once; spinning would look like hidden work. To be set
# before torch is imported.
PATIENT_THREADS = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}

Kind = Literal["candidates", "compilers"]

Run = Callable[[Channel, bool], None]
"""What a child does that is not to become a program: serve the judge until it hangs up, on the CPU
or (if true) on a GPU."""


@dataclass(frozen=True)
class Job:
    """One child to start."""

    policy: Policy
    confined: bool
    shared_bytes: int
    argv: tuple[str, ...]  # a program to become, instead of running a candidate
    files: dict[str, str]  # what that program finds in its scratch folder
    product: str  # the file of the scratch folder to bring back
    judge_cores: frozenset[int]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Job:
        policy = dict(data["policy"])
        policy["scratch"] = Path(policy["scratch"])
        policy["readable"] = tuple(Path(path) for path in policy["readable"])
        policy["cores"] = frozenset(policy["cores"])
        return cls(
            policy=Policy(**policy),
            confined=data["confined"],
            shared_bytes=data["shared_bytes"],
            argv=tuple(data["argv"]),
            files=data["files"],
            product=data["product"],
            judge_cores=frozenset(data["judge_cores"]),
        )


def serve(control: Channel, run: Run) -> None:
    """Fork a monitor per request until the judge hangs up."""
    try:
        control.send({"ready": os.getpid()})
    except WireClosed:
        return
    while True:
        try:
            request, fds = control.receive_with_fds()
        except WireClosed:
            return
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run_monitor(Job.from_json(request), run, *fds)
        for fd in fds:
            os.close(fd)


def _run_monitor(
    job: Job, run: Run, channel_fd: int, status_fd: int, log_fd: int, product_fd: int
) -> NoReturn:
    status = Channel.from_fd(status_fd)
    code = 1
    try:
        die_with_parent()
        entered = enter_namespaces() if job.confined else Report((), ())
        pid = os.fork()
        if pid == 0:
            status.close()
            os.close(product_fd)
            _run_child(job, run, entered, channel_fd, log_fd)
        # Only now: to start on whatever core is free, and then to keep off the timed ones.
        os.sched_setaffinity(0, job.judge_cores)
        os.close(channel_fd)
        os.close(log_fd)
        status.send({"child": pid})
        ended = _watch(pid, job)
        if job.product:
            _bring_back(job.policy.scratch / job.product, product_fd)
        status.send(ended)
        code = 0
    except BaseException as error:
        with contextlib.suppress(Exception):
            status.send({"failed": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(code)


def _bring_back(product: Path, product_fd: int) -> None:
    """Copy a file out of the scratch folder, which vanishes with this process."""
    with contextlib.suppress(OSError):
        fd = os.open(product, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            with open(fd, "rb") as source, open(product_fd, "wb") as target:
                shutil.copyfileobj(source, target)


def _watch(pid: int, job: Job) -> dict[str, Any]:
    """Wait for the child's end; end it where it takes more memory or processes than it may."""
    watch = Watch(
        pid=pid,
        memory_bytes=job.policy.memory_bytes,
        processes=job.policy.processes,
        baseline=usage(os.getpid()).private_bytes,
        shared_allowance=job.shared_bytes,
    )
    exceeded = None
    poller = select.poll()
    poller.register(os.pidfd_open(pid), select.POLLIN)
    while not poller.poll(_WATCH_SECONDS * 1000):
        exceeded = exceeded or watch.exceeded()
        if exceeded:
            os.kill(pid, signal.SIGKILL)
    _, code, used = os.wait4(pid, 0)
    return {
        "exited": os.waitstatus_to_exitcode(code),
        "exceeded": exceeded,
        "cpu_seconds": used.ru_utime + used.ru_stime,
    }


def _become(argv: tuple[str, ...]) -> NoReturn:
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: cannot be run in the sandbox: {error.strerror}\n".encode())
        os._exit(_NOT_RUN)


def _run_child(job: Job, run: Run, entered: Report, channel_fd: int, log_fd: int) -> NoReturn:
    channel = Channel.from_fd(channel_fd)
    try:
        die_with_parent()
        with open(os.devnull) as null:
            os.dup2(null.fileno(), 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        if job.confined:
            confined = confine(job.policy, keep_fds={0, 1, 2, channel_fd})
        else:
            os.setsid()
            os.sched_setaffinity(0, job.policy.cores)
            os.chdir(job.policy.scratch)
            confined = Report((), ("unconfined: this process runs trusted code only",))
        for name, text in job.files.items():
            Path(name).write_text(text, encoding="utf-8")
    except BaseException as error:
        channel.send({"failed": f"confinement: {type(error).__name__}: {error}"})
        os._exit(_SETUP_FAILED)
    channel.send(
        {
            "enforced": [*entered.enforced, *confined.enforced],
            "missing": [*entered.missing, *confined.missing],
        }
    )
    if job.argv:
        _become(job.argv)
    # Fatal signals leave the Python stack in the log: the line of forward that crashed.
    faulthandler.enable(file=2)
    try:
        run(channel, job.policy.gpu)
    except WireClosed:
        os._exit(0)
    os._exit(1)
