"""A confined process is alone, starts no other, and keeps the limits it was given."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from kernel_smith.evaluation.sandbox.confine import (
    apply,
    kernel,
    landlock,
    limits,
    mounts,
    namespaces,
    privileges,
    seccomp,
)

PTRACE_ATTACH = 16
NEW_PID_NAMESPACE = 0x2000_0000
TEST_PROCESS = os.getpid()


def error_of(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def without_pid_namespace(_, flags):
    return flags == NEW_PID_NAMESPACE


def ptrace(pid):
    library = ctypes.CDLL(None, use_errno=True)
    if library.ptrace(PTRACE_ATTACH, pid, None, None) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")


def test_no_other_process_is_visible(confined):
    def look():
        return [os.getpid(), [name for name in os.listdir("/proc") if name.isdigit()]]

    assert confined.value(look, namespaces.PID, mounts.PROC) == [1, ["1"]]


def test_processes_outside_cannot_be_signalled(confined):
    def attempt():
        return [error_of(lambda p=p: os.kill(p, 0)) for p in (TEST_PROCESS, os.getppid() or 2)]

    assert confined.value(attempt, namespaces.PID) == ["ESRCH", "ESRCH"]


def test_without_pid_namespace_signals_are_still_refused(confined, refuse):
    refuse("unshare", only=without_pid_namespace)
    outcome = confined.run(lambda: error_of(lambda: os.kill(os.getppid(), 0)), landlock.SCOPES)
    assert outcome.value == "EPERM"


def test_a_signal_to_the_process_group_does_not_reach_the_monitor(confined):
    def prepare():
        os.setpgid(0, 0)
        confined.prepare()

    lonely = type(confined)(confined.policy, prepare, confined.user)
    # Were the monitor hit, there would be no outcome at all.
    lonely.value(lambda: os.killpg(0, signal.SIGKILL), apply.SESSION, namespaces.PID)


def test_other_processes_cannot_be_traced(confined):
    attempt = partial(error_of, partial(ptrace, TEST_PROCESS))
    assert confined.value(attempt, seccomp.FEATURE) == "EPERM"


def test_without_the_filter_other_processes_cannot_be_traced_either(confined, refuse):
    refuse("seccomp")
    attempt = partial(error_of, partial(ptrace, TEST_PROCESS))
    assert confined.value(attempt, namespaces.PID) == "ESRCH"


def test_without_filter_and_pid_namespace_rules_refuse_tracing(confined, refuse):
    refuse("seccomp", "unshare")
    assert confined.value(lambda: error_of(lambda: ptrace(os.getppid())), landlock.FILES) == "EPERM"


@pytest.mark.parametrize(
    "start",
    [
        os.fork,
        lambda: subprocess.run(["/bin/true"], check=True),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: os.execv("/bin/true", ["true"]),
    ],
    ids=["fork", "subprocess", "posix_spawn", "exec"],
)
def test_no_process_and_no_program_can_be_started(confined, start):
    assert confined.value(lambda: error_of(start), seccomp.FEATURE) == "EPERM"


def test_with_allow_exec_a_program_runs(confined):
    def attempt():
        return subprocess.run(["/bin/echo", "hello"], capture_output=True, text=True).stdout

    assert confined.value(attempt, seccomp.FEATURE, allow_exec=True) == "hello\n"


def test_with_allow_exec_an_interpreter_in_a_closed_home_folder_runs(confined):
    if confined.user != os.geteuid():
        pytest.skip("needs an interpreter that the user may read")

    def attempt():
        command = [sys.executable, "-I", "-c", "print(6 * 7)"]
        return subprocess.run(command, capture_output=True, text=True).stdout

    assert confined.value(attempt, landlock.FILES, allow_exec=True) == "42\n"


def test_with_allow_exec_a_program_in_scratch_is_not_executed(confined):
    def attempt():
        Path("script").write_text("#!/bin/sh\necho hello\n")
        Path("script").chmod(0o755)
        return error_of(lambda: subprocess.run(["./script"]))

    assert confined.value(attempt, landlock.FILES, allow_exec=True) == "EACCES"


def test_with_allow_exec_no_namespace_can_be_entered(confined):
    def attempt():
        return [error_of(lambda f=f: kernel.call("unshare", f)) for f in (0x1000_0000, 0x2_0000)]

    assert confined.value(attempt, seccomp.FEATURE, allow_exec=True) == ["EPERM", "EPERM"]


def test_a_fork_bomb_is_bounded(confined):
    def explode():
        for count in range(1, 200):
            try:
                if os.fork() == 0:
                    signal.pause()
            except BlockingIOError:
                return count
        return count

    count = confined.value(explode, limits.PROCESSES, allow_exec=True, processes=20)
    assert count == 20


def test_a_thread_bomb_is_bounded(confined):
    def explode():
        for count in range(1, 200):
            try:
                threading.Thread(target=signal.pause, daemon=True).start()
            except RuntimeError:
                return count
        return count

    assert confined.value(explode, limits.PROCESSES, processes=20) == 20


def test_processes_left_behind_end_with_the_confined_one(confined):
    def leave_one_behind():
        if os.fork() == 0:
            signal.pause()

    # The one left behind holds the channel open: the outcome arrives once it is gone.
    confined.value(leave_one_behind, namespaces.PID, allow_exec=True)


def test_setting_the_affinity_seems_to_work_and_changes_nothing(confined):
    core = max(os.sched_getaffinity(0))

    def attempt():
        os.sched_setaffinity(0, os.sched_getaffinity(1) | {0, 1, 2, 3})
        return sorted(os.sched_getaffinity(0))

    needs = (apply.AFFINITY, seccomp.FEATURE)
    assert confined.value(attempt, *needs, cores=frozenset({core})) == [core]


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: os.nice(1),
        lambda: os.setpriority(os.PRIO_PROCESS, 0, 5),
        lambda: os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0)),
    ],
    ids=["nice", "setpriority", "sched_setscheduler"],
)
def test_scheduling_cannot_be_changed(confined, attempt):
    assert confined.value(lambda: error_of(attempt), seccomp.FEATURE) == "EPERM"


@pytest.mark.parametrize("filtered", [True, False], ids=["filter", "no filter"])
def test_limits_can_be_read_and_not_raised(confined, refuse, filtered):
    if not filtered:
        refuse("seccomp")

    def attempt():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
        except ValueError:
            return [soft, "refused"]
        return [soft, "raised"]

    needs = [seccomp.FEATURE] if filtered else [privileges.CAPABILITIES]
    assert confined.value(attempt, *needs, open_files=99) == [99, "refused"]


def test_too_much_processor_time_ends_the_process(confined):
    def spin():
        while True:
            pass

    outcome = confined.run(spin, "processor time limit", cpu_seconds=1)
    assert outcome.exit_code == -signal.SIGKILL


def test_no_privilege_is_left(confined):
    fields = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")

    def look():
        return [int(kernel.status_field(field), 16) for field in fields]

    may_search = 1 << 2 if confined.user == 0 else 0
    needs = (privileges.CAPABILITIES, privileges.BOUNDING_SET, landlock.FILES)
    assert confined.value(look, *needs) == [0, may_search, may_search, 0, 0, 1]


def test_root_becomes_a_user_without_groups_that_differs_each_time(confined):
    if confined.user != 0:
        pytest.skip("needs root")

    def look():
        return [os.getresuid(), os.getresgid(), os.getgroups()]

    first, second = (confined.value(look, privileges.USER_ID) for _ in range(2))
    assert 0 not in first[0] + first[1]
    assert first[2] == []
    assert first[0] != second[0]


def test_the_user_of_an_ordinary_users_process_stays(confined):
    if confined.user == 0:
        pytest.skip("needs an ordinary user")
    assert confined.value(os.getuid) == confined.user


def test_untrusted_code_cannot_untie_itself_from_its_monitor(confined):
    pr_set_pdeathsig = 1
    attempt = partial(error_of, partial(kernel.prctl, pr_set_pdeathsig, 0))
    assert confined.value(attempt, seccomp.FEATURE) == "EPERM"


def test_a_crash_is_visible_in_the_exit_code(confined):
    outcome = confined.run(lambda: ctypes.string_at(8))
    assert outcome.exit_code == -signal.SIGSEGV
