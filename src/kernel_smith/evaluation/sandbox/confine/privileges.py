"""Privileges: another user for root, no capabilities, and none to be gained.

Root becomes a user that owns nothing and that no other process shares. One capability is kept, and
only under Landlock, which decides what may be read: the interpreter and its libraries may lie in a
home folder that is closed to other users (CAP_DAC_READ_SEARCH).
"""

from __future__ import annotations

import errno
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.evaluation.sandbox.confine import kernel
from kernel_smith.evaluation.sandbox.confine.report import Ledger

USER_ID = "own user id"
BOUNDING_SET = "capability bounding set"
CAPABILITIES = "dropped capabilities"
NO_NEW_PRIVILEGES = "no new privileges"

_NOBODY = 65534
_UNUSED_IDS = range(0x6000_0000, 0x7000_0000)

_DAC_READ_SEARCH = 2
_SYS_ADMIN = 21
_CAPABILITY_VERSION_3 = 0x2008_0522

_PR_SET_KEEPCAPS = 8
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _AMBIENT_RAISE, _AMBIENT_CLEAR_ALL = 47, 2, 4


@dataclass(frozen=True)
class Identity:
    uid: int
    gid: int
    exclusive: bool
    """Is no other process likely to have this user?"""


def may_administer() -> bool:
    """Does this process have CAP_SYS_ADMIN, without which namespaces need a user namespace?"""
    effective = kernel.status_field("CapEff")
    if effective is None:
        return os.geteuid() == 0
    return bool(int(effective, 16) >> _SYS_ADMIN & 1)


def choose_identity() -> Identity:
    """Whom to become: for root somebody without possessions, for others themselves."""
    if os.geteuid() == 0:
        chosen = secrets.choice(_UNUSED_IDS)
        for candidate in (Identity(chosen, chosen, True), Identity(_NOBODY, _NOBODY, False)):
            if _is_mapped("uid_map", candidate.uid) and _is_mapped("gid_map", candidate.gid):
                return candidate
    return Identity(os.geteuid(), os.getegid(), False)


def drop(ledger: Ledger, identity: Identity, *, keep_search: bool, across_exec: bool) -> None:
    """Become `identity` and give up every privilege.

    With `keep_search` one capability stays: to search and read whatever Landlock allows. With
    `across_exec` programs that are executed have it as well.
    """
    was_root = os.geteuid() == 0
    kept = 1 << _DAC_READ_SEARCH if was_root and keep_search else 0
    inherited = kept if across_exec else 0
    ledger.attempt(
        BOUNDING_SET,
        lambda: _reduce_bounding_set(inherited),
        otherwise="programs with file capabilities are stopped by no-new-privileges alone",
    )
    if was_root:
        _become(ledger, identity)
    ledger.attempt(
        CAPABILITIES,
        lambda: _reduce_capabilities(kept, inherited),
        otherwise="the process keeps the capabilities it was started with",
    )
    ledger.attempt(
        NO_NEW_PRIVILEGES,
        lambda: kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1),
        otherwise="set-user-id programs could be executed with their owner's rights",
    )


def _become(ledger: Ledger, identity: Identity) -> None:
    otherwise = "the process goes on as root, and process limits do not bind it"
    if identity.uid == os.geteuid():
        ledger.lacks(USER_ID, otherwise, because="this user namespace has no other users")
        return
    ledger.attempt(USER_ID, lambda: _change_user(identity), otherwise=otherwise)


def _change_user(identity: Identity) -> None:
    kernel.prctl(_PR_SET_KEEPCAPS, 1)
    try:
        os.setgroups([])
        os.setresgid(identity.gid, identity.gid, identity.gid)
        os.setresuid(identity.uid, identity.uid, identity.uid)
    finally:
        kernel.prctl(_PR_SET_KEEPCAPS, 0)


def _reduce_bounding_set(kept: int) -> None:
    for capability in range(64):
        if kept >> capability & 1:
            continue
        try:
            kernel.prctl(_PR_CAPBSET_DROP, capability)
        except OSError as refusal:
            if refusal.errno == errno.EINVAL:  # beyond the last one that this kernel knows
                return
            raise


def _reduce_capabilities(kept: int, inherited: int) -> None:
    kernel.prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    kernel.call("capset", header, struct.pack("<6I", kept, kept, inherited, 0, 0, 0))
    if inherited:
        kernel.prctl(_PR_CAP_AMBIENT, _AMBIENT_RAISE, _DAC_READ_SEARCH)


def _is_mapped(map_name: str, identifier: int) -> bool:
    try:
        lines = Path("/proc/self", map_name).read_text().splitlines()
    except OSError:
        return False
    ranges = (tuple(map(int, line.split())) for line in lines)
    return any(inside <= identifier < inside + count for inside, _, count in ranges)
