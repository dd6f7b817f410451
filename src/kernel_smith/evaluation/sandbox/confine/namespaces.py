"""Namespaces: a network, process table and mount table that hold nothing of the host's.

The monitor enters them before it forks the process to be confined, which becomes process 1 of the
new process table: when it ends, the kernel ends everything it left behind.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import kernel
from kernel_smith.evaluation.sandbox.confine.privileges import may_administer
from kernel_smith.evaluation.sandbox.confine.report import Ledger, Report

USER = "user namespace"
MOUNT = "mount namespace"
NETWORK = "network namespace"
IPC = "ipc namespace"
UTS = "uts namespace"
PID = "pid namespace"

NEW_MOUNT_NAMESPACE = 0x0002_0000
_NEW_USER_NAMESPACE = 0x1000_0000
_OTHERS = (
    (
        MOUNT,
        NEW_MOUNT_NAMESPACE,
        "the scratch folder has no size limit of its own, and mounts stay writable",
    ),
    (NETWORK, 0x4000_0000, "the network is closed by the system call filter alone"),
    (IPC, 0x0800_0000, "System V and POSIX queues are closed by the system call filter alone"),
    (UTS, 0x0400_0000, "the host's name is visible"),
    (
        PID,
        0x2000_0000,
        "other processes are visible, and processes left behind outlive the one confined",
    ),
)
_PR_SET_PDEATHSIG = 1
_STATUS_OF_AN_ORPHAN = 128 + signal.SIGKILL

# What this process entered, and a descriptor of it: a forked child inherits both.
_entered: set[str] = set()
_monitor: int | None = None


def enter_namespaces() -> Report:
    """In the monitor: enter every namespace the system grants; its children will be in them."""
    global _monitor
    ledger = Ledger()
    if not may_administer():
        _enter(ledger, USER, _enter_user_namespace, "no other namespace can be entered either")
    for feature, flag, otherwise in _OTHERS:
        _enter(ledger, feature, partial(kernel.call, "unshare", flag), otherwise)
    try:
        _monitor = os.pidfd_open(os.getpid())
    except OSError:
        _monitor = None
    return ledger.report()


def entered(feature: str) -> bool:
    """Is this process, or the monitor that forked it, in a new namespace of this kind?"""
    return feature in _entered


def die_with_parent(parent: int | None = None) -> None:
    """Be killed when the parent ends; end at once if it has ended already.

    The parent is the thread that forked; who started as a program of its own has to be told which
    process that was, since by now it may be another. A change of user clears the setting, so
    `confine` makes it once more after privileges were dropped.
    """
    parent = parent or os.getppid()
    kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Seen from a new pid namespace every parent is 0; there the descriptor tells.
    if os.getppid() != parent or _monitor_has_ended():
        os._exit(_STATUS_OF_AN_ORPHAN)


def monitor_descriptor() -> int | None:
    """To be kept open until `die_with_parent` was called for the last time."""
    return _monitor


def forget_monitor() -> None:
    """Close that descriptor: untrusted code must not have it."""
    global _monitor
    if _monitor is not None:
        os.close(_monitor)
    _monitor = None


def _monitor_has_ended() -> bool:
    if _monitor is None:
        return False
    ended, _, _ = select.select([_monitor], [], [], 0)
    return bool(ended)


def _enter(ledger: Ledger, feature: str, action: Callable[[], object], otherwise: str) -> None:
    if ledger.attempt(feature, action, otherwise=otherwise):
        _entered.add(feature)


def _enter_user_namespace() -> None:
    """Every user is still called what it was; all privileges are those of the namespace."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.call("unshare", _NEW_USER_NAMESPACE)
    _write("setgroups", "deny")  # or the kernel refuses the next but one
    _write("uid_map", f"{uid} {uid} 1")
    _write("gid_map", f"{gid} {gid} 1")


def _write(file: str, text: str) -> None:
    Path("/proc/self", file).write_text(text)
