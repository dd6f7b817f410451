"""Mounts: a scratch file system of bounded size, everything else read-only, a /proc of one's own.

The scratch file system is mounted where monitor and confined process both see it, so that the
monitor can collect what was written. The rest happens in a further namespace of the confined
process alone: the monitor goes on seeing the host's /proc, in which it watches.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import kernel, namespaces
from kernel_smith.evaluation.sandbox.confine.privileges import Identity
from kernel_smith.evaluation.sandbox.confine.report import Ledger, Unavailable

SCRATCH = "scratch file system"
OWNER = "owner of the scratch folder"
OWN_TABLE = "own mount table"
READ_ONLY = "read-only mounts"
PROC = "own /proc"

MAX_FILES = 4096

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY = 1


def mount_all(
    ledger: Ledger, scratch: Path, scratch_bytes: int, owner: Identity, *, gpu: bool
) -> None:
    """Lay out the file systems and go to the scratch folder."""
    bounded = ledger.attempt(
        SCRATCH,
        lambda: _mount_scratch(scratch, scratch_bytes, owner),
        otherwise="each file in the scratch folder is bounded, but not their sum",
    )
    if not bounded and owner.uid != os.geteuid():
        ledger.attempt(
            OWNER,
            lambda: os.chown(scratch, owner.uid, owner.gid),
            otherwise="the scratch folder cannot be written",
        )
    if ledger.attempt(
        OWN_TABLE,
        _seclude,
        otherwise="attributes of files that the user owns can be changed anywhere, "
        "and names of other processes can be read",
    ):
        _tighten(ledger, scratch, bounded, gpu=gpu)
    os.chdir(scratch)


def _tighten(ledger: Ledger, scratch: Path, bounded: bool, *, gpu: bool) -> None:
    ledger.attempt(
        READ_ONLY,
        lambda: _make_read_only(scratch, bounded),
        otherwise="attributes of files that the user owns can be changed anywhere",
    )
    ledger.attempt(
        PROC,
        lambda: _mount_proc(writable=gpu),
        otherwise="names of other processes can be read",
    )


def _mount_scratch(scratch: Path, size: int, owner: Identity) -> None:
    _require_namespace(namespaces.MOUNT)
    # First of all, or what is mounted here would appear on the host.
    _mount("none", Path("/"), None, _MS_REC | _MS_PRIVATE)
    options = f"size={size},nr_inodes={MAX_FILES},mode=700,uid={owner.uid},gid={owner.gid}"
    _mount("tmpfs", scratch, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def _seclude() -> None:
    _require_namespace(namespaces.MOUNT)
    kernel.call("unshare", namespaces.NEW_MOUNT_NAMESPACE)
    _mount("none", Path("/"), None, _MS_REC | _MS_PRIVATE)


def _make_read_only(scratch: Path, bounded: bool) -> None:
    """Landlock guards contents; modes, owners, times and the like need this."""
    if not bounded:
        raise Unavailable(f"no {SCRATCH}")
    _set_attributes(Path("/"), _AT_RECURSIVE, switch_on=_ATTR_RDONLY)
    _set_attributes(scratch, 0, switch_off=_ATTR_RDONLY)


def _mount_proc(*, writable: bool) -> None:
    """The driver of a GPU writes to files of its own process there."""
    _require_namespace(namespaces.PID)
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _mount("proc", Path("/proc"), "proc", flags if writable else flags | _MS_RDONLY)


def _require_namespace(feature: str) -> None:
    if not namespaces.entered(feature):
        raise Unavailable(f"no {feature}")


def _mount(source: str, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    file_system = kind.encode() if kind else None
    kernel.call("mount", source.encode(), os.fsencode(target), file_system, flags, options.encode())


def _set_attributes(target: Path, flags: int, *, switch_on: int = 0, switch_off: int = 0) -> None:
    attributes = struct.pack("<4Q", switch_on, switch_off, 0, 0)
    path = os.fsencode(target)
    kernel.call("mount_setattr", _AT_FDCWD, path, flags, attributes, len(attributes))
