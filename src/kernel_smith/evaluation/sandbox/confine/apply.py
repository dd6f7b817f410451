"""Confining the calling process, in the only order that works."""

from __future__ import annotations

import os
from collections.abc import Collection

from kernel_smith.evaluation.sandbox.confine import (
    descriptors,
    devices,
    environment,
    kernel,
    landlock,
    limits,
    mounts,
    namespaces,
    privileges,
    readable,
    seccomp,
)
from kernel_smith.evaluation.sandbox.confine.policy import Policy
from kernel_smith.evaluation.sandbox.confine.report import Ledger, Report

AFFINITY = "cpu affinity"
SESSION = "own session"
PARENT = "ends with its monitor"


def confine(policy: Policy, *, keep_fds: Collection[int]) -> Report:
    """Confine this process for ever. Refused features are reported, never raised.

    Call it in a child that was forked after `enter_namespaces()`. Descriptors above 2 that are not
    in `keep_fds` are closed; where 0, 1 and 2 lead is the caller's choice. Only the calling thread
    would be confined, so it must be the only one.
    """
    if kernel.status_field("Threads") not in ("1", None):
        raise RuntimeError("confine() needs a process with a single thread")
    ledger = Ledger()
    _separate(ledger, policy)
    environment.scrub(ledger, policy.scratch)
    identity = privileges.choose_identity()
    mounts.mount_all(ledger, policy.scratch, policy.scratch_bytes, identity, gpu=policy.gpu)
    monitor = namespaces.monitor_descriptor()
    descriptors.close_others({*keep_fds} if monitor is None else {*keep_fds, monitor})
    limits.limit(ledger, policy, identity)
    privileges.drop(ledger, identity, keep_search=landlock.abi() > 0, across_exec=policy.allow_exec)
    _tie_to_monitor(ledger)
    landlock.restrict(
        ledger,
        scratch=policy.scratch,
        readable=(*policy.readable, *devices.descriptions()) if policy.gpu else policy.readable,
        listable=readable.listable(policy.readable),
        devices=devices.nodes() if policy.gpu else (),
    )
    seccomp.install(ledger, allow_exec=policy.allow_exec, gpu=policy.gpu)
    return ledger.report()


def _separate(ledger: Ledger, policy: Policy) -> None:
    ledger.attempt(
        AFFINITY,
        lambda: os.sched_setaffinity(0, policy.cores),
        otherwise="the process may run on any core",
    )
    # A signal to "my process group" reaches members outside the pid namespace, too.
    ledger.attempt(
        SESSION, os.setsid, otherwise="the process group and terminal of the monitor are shared"
    )
    limits.go_first_when_memory_runs_out(ledger)
    os.umask(0o077)


def _tie_to_monitor(ledger: Ledger) -> None:
    """Only now: changing the user undoes it."""
    ledger.attempt(
        PARENT,
        namespaces.die_with_parent,
        otherwise="if the monitor is killed, the process goes on",
    )
    namespaces.forget_monitor()
