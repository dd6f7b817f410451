"""Landlock: which files may be read, and that only the scratch folder may be written.

Each version of the interface (its "ABI") knows more rights. All rights known to this kernel are
taken away and then given back by path; rights that it does not know yet are reported as missing.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from functools import reduce
from operator import or_
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import kernel
from kernel_smith.evaluation.sandbox.confine.report import Ledger

FILES = "file access rules"
TCP = "TCP rules"
SCOPES = "signal and socket scopes"

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
_MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK = 1 << 8, 1 << 9, 1 << 10, 1 << 11
_MAKE_SYM, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15

# The number of file rights that each ABI knows; later ones know as many as the last here.
_FILE_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_RIGHTS_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_MAY_READ = _EXECUTE | _READ_FILE | _READ_DIR
_MAY_WRITE_TO_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE
_MAY_COMPUTE = _MAY_WRITE_TO_DEVICE | _IOCTL_DEV
_MAY_USE_SCRATCH = (
    *(_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR),
    *(_MAKE_REG, _MAKE_FIFO, _MAKE_SYM, _REFER, _TRUNCATE),
)
_TCP_BIND_AND_CONNECT = 0b11
_SIGNALS_AND_ABSTRACT_SOCKETS = 0b11

_ASK_FOR_VERSION = 1
_PATH_BENEATH = 1
_LOG_NOTHING = 1  # what an untrusted program was denied would flood the system's audit log

_MISSING_BEFORE = {
    3: ("truncation rules", "a file outside the scratch folder can be truncated"),
    4: (TCP, "TCP is refused by the network namespace and the system call filter alone"),
    5: ("device control rules", "devices that may be opened accept every control command"),
    6: (SCOPES, "processes outside are protected from signals by the pid namespace alone"),
}


def abi() -> int:
    """The version this kernel offers; 0 if none."""
    try:
        return kernel.call("landlock_create_ruleset", None, 0, _ASK_FOR_VERSION)
    except OSError:
        return 0


def restrict(
    ledger: Ledger,
    *,
    scratch: Path,
    readable: Iterable[Path],
    listable: Iterable[Path],
    devices: Iterable[Path] = (),
) -> None:
    """Restrict this thread and all that it starts, for ever. Needs no-new-privileges.

    In `listable` folders names may be listed, while their files stay closed. `devices` are those of
    GPUs, whose driver writes to files of its own process in /proc, too.
    """
    version = abi()
    devices = tuple(devices)
    rights = _rights_by_path(version, scratch, readable, listable)
    rights += [(node, _MAY_COMPUTE & _file_rights(version)) for node in devices]
    if devices:
        rights.append((Path("/proc"), (_WRITE_FILE | _TRUNCATE) & _file_rights(version)))
    if not ledger.attempt(
        FILES,
        lambda: _enforce(version, rights),
        otherwise="files are protected by ordinary permissions and read-only mounts alone",
    ):
        return
    for since, (feature, otherwise) in _MISSING_BEFORE.items():
        if version < since:
            ledger.lacks(feature, otherwise, because=f"Landlock ABI {version}, needs {since}")
        else:
            ledger.has(feature)


def _rights_by_path(
    version: int, scratch: Path, readable: Iterable[Path], listable: Iterable[Path]
) -> list[tuple[Path, int]]:
    known = _file_rights(version)
    pairs = [(path, _MAY_READ) for path in readable]
    pairs += [(path, _READ_DIR) for path in listable]
    pairs += [(Path("/dev/null"), _MAY_WRITE_TO_DEVICE), (scratch, reduce(or_, _MAY_USE_SCRATCH))]
    return [(path, rights & known) for path, rights in pairs]


def _file_rights(version: int) -> int:
    newest = max(_FILE_RIGHTS_BY_ABI)
    return (1 << _FILE_RIGHTS_BY_ABI.get(min(version, newest), 0)) - 1


def _enforce(version: int, rights: list[tuple[Path, int]]) -> None:
    fields = [
        _file_rights(version),
        _TCP_BIND_AND_CONNECT if version >= 4 else 0,
        _SIGNALS_AND_ABSTRACT_SOCKETS if version >= 6 else 0,
    ]
    attributes = struct.pack("<3Q", *fields)
    ruleset = kernel.call("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        for path, allowed in rights:
            _allow_beneath(ruleset, path, allowed)
        kernel.call("landlock_restrict_self", ruleset, _LOG_NOTHING if version >= 7 else 0)
    finally:
        os.close(ruleset)


def _allow_beneath(ruleset: int, path: Path, allowed: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be found need not be allowed
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= _RIGHTS_OF_A_FILE
        rule = struct.pack("<Qi", allowed, descriptor)
        kernel.call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
