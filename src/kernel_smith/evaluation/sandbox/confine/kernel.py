"""The one door to the kernel: system calls by name, which raise `OSError` when refused."""

from __future__ import annotations

import ctypes
import errno
import os

from kernel_smith.evaluation.sandbox.confine.syscalls import NUMBERS

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

Argument = int | bytes | None


def call(name: str, *arguments: Argument) -> int:
    """Call the kernel. Integers travel as machine words, bytes as pointers to them."""
    number = NUMBERS.get(name)
    if number is None:
        raise OSError(errno.ENOSYS, "this architecture is not supported", name)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    if result == -1:
        reason = ctypes.get_errno()
        raise OSError(reason, os.strerror(reason), name)
    return result


def prctl(option: int, *arguments: int) -> int:
    """`prctl`, whose unused arguments must be zero."""
    unused = (0,) * (4 - len(arguments))
    return call("prctl", option, *arguments, *unused)


def status_field(name: str, task: str = "self") -> str | None:
    """One line of /proc/TASK/status without its label, or None if it is not there."""
    label = f"{name}:"
    try:
        with open(f"/proc/{task}/status", encoding="utf-8", errors="replace") as lines:
            found = next((line for line in lines if line.startswith(label)), None)
    except OSError:
        return None
    return found[len(label) :].strip() if found is not None else None
