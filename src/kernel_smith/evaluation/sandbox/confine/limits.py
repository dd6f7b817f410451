"""Resource limits: the friendly half of bounding memory, processes, time and files.

The data limit makes an allocation that is far too large fail with `MemoryError`. It counts what is
reserved, used or not, so it leaves room for what runtimes reserve; and it can be evaded (memory
that was written and then made read-only does not count). Hence the monitor watches what is used.
"""

from __future__ import annotations

import os
import re
import resource
from functools import partial
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import kernel, namespaces
from kernel_smith.evaluation.sandbox.confine.policy import Policy
from kernel_smith.evaluation.sandbox.confine.privileges import Identity
from kernel_smith.evaluation.sandbox.confine.report import Ledger, Unavailable

OUT_OF_MEMORY = "first to go when memory runs out"
DATA = "memory limit"
PROCESSES = "process limit"

_COUNTED_PER_NAMESPACE_SINCE = (5, 14)
_USUAL_STACK = 8 << 20
_ALLOCATOR_ARENA = 1 << 30  # mimalloc's, which PyTorch uses on aarch64


def go_first_when_memory_runs_out(ledger: Ledger) -> None:
    ledger.attempt(
        OUT_OF_MEMORY,
        lambda: Path("/proc/self/oom_score_adj").write_text("1000"),
        otherwise="if the machine runs out of memory, another process may be killed",
    )


def limit(ledger: Ledger, policy: Policy, identity: Identity) -> None:
    """Set every limit; none can be raised again without privileges."""
    ledger.attempt(
        DATA,
        lambda: _set(resource.RLIMIT_DATA, _data_bytes() + policy.memory_bytes + reserved(policy)),
        otherwise="allocating too much is noticed by the monitor alone",
    )
    ledger.attempt(
        PROCESSES,
        lambda: _set(resource.RLIMIT_NPROC, _allowed_tasks(policy.processes, identity)),
        otherwise="too many processes or threads are noticed by the monitor alone",
    )
    others = (
        ("processor time limit", resource.RLIMIT_CPU, policy.cpu_seconds, policy.cpu_seconds + 1),
        ("file size limit", resource.RLIMIT_FSIZE, policy.file_bytes, policy.file_bytes),
        ("open file limit", resource.RLIMIT_NOFILE, policy.open_files, policy.open_files),
        ("no core dumps", resource.RLIMIT_CORE, 0, 0),
        ("no locked memory", resource.RLIMIT_MEMLOCK, 0, 0),
        ("no message queues", resource.RLIMIT_MSGQUEUE, 0, 0),
    )
    for feature, which, soft, hard in others:
        ledger.attempt(
            feature,
            partial(_set, which, soft, hard),
            otherwise="it is not limited beyond what the user's own limits say",
        )


def reserved(policy: Policy) -> int:
    """What runtimes reserve and may never use: a stack for each thread, an allocator's arena."""
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    if stack == resource.RLIM_INFINITY:
        stack = _USUAL_STACK
    return policy.processes * stack + _ALLOCATOR_ARENA


def _set(which: int, soft: int, hard: int | None = None) -> None:
    _, ceiling = resource.getrlimit(which)
    wanted = soft if hard is None else hard
    highest = wanted if ceiling == resource.RLIM_INFINITY else min(wanted, ceiling)
    resource.setrlimit(which, (min(soft, highest), highest))


def _data_bytes() -> int:
    field = kernel.status_field("VmData")
    if field is None:
        raise Unavailable("/proc/self/status cannot be read")
    return int(field.split()[0]) * 1024


def _allowed_tasks(wanted: int, identity: Identity) -> int:
    """The kernel counts all tasks of a user; those that are not ours come on top."""
    if identity.exclusive:
        return wanted
    if namespaces.entered(namespaces.USER) and _kernel_version() >= _COUNTED_PER_NAMESPACE_SINCE:
        return wanted + 1  # the monitor
    return wanted + _tasks_of(identity.uid)


def _kernel_version() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def _tasks_of(uid: int) -> int:
    tasks = 0
    for entry in Path("/proc").glob("[0-9]*"):
        owner = kernel.status_field("Uid", entry.name)
        if owner is not None and int(owner.split()[0]) == uid:
            tasks += int(kernel.status_field("Threads", entry.name) or 0)
    return tasks
