"""The system call filter: what a confined process may not even ask for.

It is a list of refusals, not of permissions: Python, PyTorch and OpenMP runtimes use a wide and
changing set of calls, and files are Landlock's business. Refused are other processes, programs, the
network, everything that administers the machine, interfaces with a history of kernel bugs, and the
ways to hold memory that the monitor cannot count. Calls newer than the table do not exist.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from collections.abc import Iterable

from kernel_smith.evaluation.sandbox.confine import kernel
from kernel_smith.evaluation.sandbox.confine.bpf import (
    ALLOW,
    ANY_BIT,
    ARCHITECTURE,
    EQUAL,
    GREATER,
    KILL_PROCESS,
    NUMBER,
    Block,
    assemble,
    give,
    keep_bits,
    load,
    load_argument,
    refuse,
    unless,
    when,
)
from kernel_smith.evaluation.sandbox.confine.report import Ledger, Unavailable
from kernel_smith.evaluation.sandbox.confine.syscalls import (
    NEWEST_KNOWN,
    Architecture,
    architecture,
    numbers,
)

FEATURE = "system call filter"

_AUDIT_ARCHITECTURE: dict[Architecture, int] = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}

_PROCESSES = ("fork", "vfork", "execve", "execveat")
_NETWORK = ("socket", "connect", "bind", "listen", "accept", "accept4")
_NEEDED_BY_DRIVERS = ("socket", "bind", "listen")
_ALWAYS_REFUSED = (
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "perf_event_open"),
    *("pidfd_open", "pidfd_getfd", "pidfd_send_signal"),
    # file systems and namespaces
    *("mount", "umount2", "mount_setattr", "move_mount", "open_tree"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "pivot_root", "chroot", "setns", "unshare"),
    *("open_by_handle_at", "name_to_handle_at", "fanotify_init", "quotactl", "quotactl_fd"),
    # the machine
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("swapon", "swapoff", "acct", "syslog", "personality", "vhangup"),
    *("settimeofday", "clock_settime", "clock_adjtime", "adjtimex"),
    *("iopl", "ioperm", "modify_ldt"),
    # large kernel interfaces that computing needs nothing of
    *("bpf", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("keyctl", "add_key", "request_key"),
    # memory that neither the data limit nor the monitor counts
    *("memfd_create", "memfd_secret", "shmget", "shmat", "msgget", "semget", "mq_open"),
    # more than the share of the processor that was given, and other limits
    *("sched_setscheduler", "sched_setattr", "sched_setparam", "setpriority", "ioprio_set"),
    *("setrlimit", "seccomp"),
)

_CLONE_THREAD = 0x0001_0000
_CLONE_NEW_NAMESPACES = 0x7E02_0000
_REFUSED_PRCTL = {
    "PR_SET_PDEATHSIG": 1,  # it would outlive its monitor
    "PR_SET_DUMPABLE": 4,  # it would hide from a judge who samples it
    "PR_SET_SECCOMP": 22,
    "PR_TASK_PERF_EVENTS_DISABLE": 31,
    "PR_TASK_PERF_EVENTS_ENABLE": 32,
    "PR_SET_MM": 35,
    "PR_SCHED_CORE": 62,
    "PR_SET_PTRACER": 0x59616D61,
}
_TERMINAL_INJECTION = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C}
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_AF_UNIX, _SOCKET_TYPES, _SOCK_STREAM, _SOCK_SEQPACKET = 1, 0xF, 1, 5

_SET_MODE_FILTER = 1
_SPEC_ALLOW = 4


def build_program(architecture: Architecture, *, allow_exec: bool, gpu: bool = False) -> Block:
    """The filter as instructions: the call's number decides, for a few its arguments too."""
    known = numbers(architecture)
    program = load(ARCHITECTURE)
    program += unless(EQUAL, _AUDIT_ARCHITECTURE[architecture], give(KILL_PROCESS))
    program += load(NUMBER)
    # Covers x32 too, whose numbers have bit 30 set.
    program += when(GREATER, NEWEST_KNOWN, give(refuse(errno.ENOSYS)))
    for name, block in _dependent_on_arguments(allow_exec, gpu).items():
        program += when(EQUAL, known[name], block)
    for name, verdict in _verdicts(allow_exec, gpu).items():
        if name in known:
            program += when(EQUAL, known[name], give(verdict))
    return program + give(ALLOW)


def install(ledger: Ledger, *, allow_exec: bool, gpu: bool) -> None:
    """Filter this thread and all that it starts, for ever. Needs no-new-privileges."""
    ledger.attempt(
        FEATURE,
        lambda: _install(allow_exec, gpu),
        otherwise="forking, executing programs, tracing and administrative system calls "
        "are bounded by namespaces and privileges alone",
    )


def _verdicts(allow_exec: bool, gpu: bool) -> dict[str, int]:
    verdicts = dict.fromkeys(_ALWAYS_REFUSED, refuse(errno.EPERM))
    verdicts |= dict.fromkeys(_NETWORK, refuse(errno.EACCES))
    if gpu:
        for name in _NEEDED_BY_DRIVERS:
            del verdicts[name]
    if not allow_exec:
        verdicts |= dict.fromkeys(_PROCESSES, refuse(errno.EPERM))
    # Its flags are in memory, where a filter cannot look; the C library falls back to clone.
    verdicts["clone3"] = refuse(errno.ENOSYS)
    # OpenMP runtimes pin their threads and take a failure ill: it succeeds and does nothing.
    verdicts["sched_setaffinity"] = refuse(0)
    return verdicts


def _dependent_on_arguments(allow_exec: bool, gpu: bool) -> dict[str, Block]:
    # Drivers of GPUs listen on a socket that nobody can connect to, and share memory with nobody.
    special = {"socket": _local_and_connected()} if gpu else {"mmap": _mmap()}
    return special | {
        "clone": _clone(allow_exec),
        "prctl": _refuse_values(0, _REFUSED_PRCTL.values()),
        "ioctl": _refuse_values(1, _TERMINAL_INJECTION.values()),
        "prlimit64": _prlimit(),
        "socketpair": _local_and_connected(),
    }


def _clone(allow_exec: bool) -> Block:
    block = load_argument(0)
    block += when(ANY_BIT, _CLONE_NEW_NAMESPACES, give(refuse(errno.EPERM)))
    if not allow_exec:
        block += unless(ANY_BIT, _CLONE_THREAD, give(refuse(errno.EPERM)))
    return block + give(ALLOW)


def _mmap() -> Block:
    """No shared anonymous memory: pages of it can be held while no process has them mapped."""
    block = load_argument(3)
    block += unless(ANY_BIT, _MAP_ANONYMOUS, give(ALLOW))
    return block + unless(ANY_BIT, _MAP_SHARED, give(ALLOW)) + give(refuse(errno.EPERM))


def _prlimit() -> Block:
    """Reading limits is fine; a pointer to new ones is not."""
    block = load_argument(2) + unless(EQUAL, 0, give(refuse(errno.EPERM)))
    block += load_argument(2, high_half=True) + unless(EQUAL, 0, give(refuse(errno.EPERM)))
    return block + give(ALLOW)


def _local_and_connected() -> Block:
    """No datagram sockets: without being connected they could address any other socket."""
    block = load_argument(0) + unless(EQUAL, _AF_UNIX, give(refuse(errno.EACCES)))
    block += load_argument(1) + keep_bits(_SOCKET_TYPES)
    block += when(EQUAL, _SOCK_STREAM, give(ALLOW)) + when(EQUAL, _SOCK_SEQPACKET, give(ALLOW))
    return block + give(refuse(errno.EACCES))


def _refuse_values(argument: int, values: Iterable[int]) -> Block:
    block = load_argument(argument)
    for value in values:
        block += when(EQUAL, value, give(refuse(errno.EPERM)))
    return block + give(ALLOW)


def _install(allow_exec: bool, gpu: bool) -> None:
    if _MACHINE is None:
        raise Unavailable("this architecture is not supported")
    code = _CODE[allow_exec, gpu]
    instructions = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(instructions))
    try:
        # Without this flag older kernels slow a filtered process down (store bypass mitigation),
        # and the candidate would be timed on another processor than the reference.
        kernel.call("seccomp", _SET_MODE_FILTER, _SPEC_ALLOW, header)
    except OSError as refusal:
        if refusal.errno != errno.EINVAL:
            raise
        kernel.call("seccomp", _SET_MODE_FILTER, 0, header)


_MACHINE = architecture()
# Assembled on import, so that no confined process has to.
_CODE = (
    {
        (allow, gpu): assemble(build_program(_MACHINE, allow_exec=allow, gpu=gpu))
        for allow in (False, True)
        for gpu in (False, True)
    }
    if _MACHINE
    else {}
)
