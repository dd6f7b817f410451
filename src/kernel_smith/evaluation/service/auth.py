"""Who asks: a file of clients with the hashes of their secrets, and the check of a request.

Each line of the file is `name:sha256-hex` or `name:sha256-hex:priority`, the highest priority that
this client's jobs may have. A secret is shown once, when it is made; the file cannot reveal it.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import BadInput, reason_of, writing
from kernel_smith.store.faults import refuse_no_file

_SECRET_BYTES = 32
_HIGHEST_PRIORITY = 10
_OWN_FOLDER = "choose a file in a folder that is yours"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_LINE = re.compile(rf"({_NAME.pattern}):([0-9a-f]{{64}})(?::(-?\d{{1,2}}))?")


@dataclass(frozen=True)
class Client:
    name: str
    priority_cap: int = _HIGHEST_PRIORITY


@dataclass(frozen=True)
class _Entry:
    client: Client
    digest: str

    def line(self) -> str:
        cap = self.client.priority_cap
        return f"{self.client.name}:{self.digest}" + (f":{cap}" if cap != _HIGHEST_PRIORITY else "")


class TokenFile:
    """The clients of a service. A file that changes is read again, so nothing need be restarted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._version: tuple[int, int, int] | None = None
        self._entries: tuple[_Entry, ...] = ()
        self._refresh()

    def find(self, secret: str) -> Client | None:
        """The client with this secret. Takes as long for a wrong one as for a right one."""
        digest = _digest(secret)
        found: Client | None = None
        for entry in self._refresh():
            if hmac.compare_digest(entry.digest, digest):
                found = entry.client
        return found

    def _refresh(self) -> tuple[_Entry, ...]:
        with self._lock:
            try:
                state = self.path.stat()
                version = (state.st_mtime_ns, state.st_size, state.st_ino)
            except OSError as error:
                raise _unreadable(self.path, error) from None
            if version != self._version:
                self._entries = _read(self.path)
                self._version = version
            return self._entries


def add_token(path: Path, name: str, priority_cap: int = _HIGHEST_PRIORITY) -> str:
    """Make a secret for a new client and return it; only its hash is kept."""
    if not _NAME.fullmatch(name):
        hint = "use letters, digits, '.', '_' and '-', at most 64 of them"
        raise BadInput(f"a client cannot be called {name!r}", hint=hint)
    if abs(priority_cap) > _HIGHEST_PRIORITY:
        hint = f"choose -{_HIGHEST_PRIORITY} to {_HIGHEST_PRIORITY}"
        raise BadInput(f"{priority_cap} is no priority", hint=hint)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    with _changing(path) as entries:
        if any(entry.client.name == name for entry in entries):
            hint = "remove that one first, or choose another name"
            raise BadInput(f"{path}: there is a client {name} already", hint=hint)
        entries.append(_Entry(Client(name, priority_cap), _digest(secret)))
    return secret


def list_tokens(path: Path) -> list[Client]:
    return [entry.client for entry in _read(path)]


def remove_token(path: Path, name: str) -> None:
    with _changing(path) as entries:
        kept = [entry for entry in entries if entry.client.name != name]
        if len(kept) == len(entries):
            known = ", ".join(entry.client.name for entry in entries) or "none"
            raise BadInput(f"{path}: there is no client {name}", hint=f"the clients are: {known}")
        entries[:] = kept


def _digest(secret: str) -> str:
    # The secret is 32 random bytes, so a fast hash is enough: there is nothing to guess.
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()


def _read(path: Path) -> tuple[_Entry, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    entries = [
        _parse(path, number, line.strip())
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    names = [entry.client.name for entry in entries]
    if len(set(names)) != len(names):
        hint = "give each client one line"
        raise BadInput(f"{path}: the names of clients must differ", hint=hint)
    return tuple(entries)


def _parse(path: Path, number: int, line: str) -> _Entry:
    found = _LINE.fullmatch(line)
    cap = int(found[3] or _HIGHEST_PRIORITY) if found else 0
    if found is None or abs(cap) > _HIGHEST_PRIORITY:
        what = f"{path}:{number}: expected name:sha256-hex or name:sha256-hex:priority"
        raise BadInput(what, hint="make lines with `kernel-smith serve tokens add FILE NAME`")
    return _Entry(Client(found[1], cap), found[2])


@contextmanager
def _changing(path: Path) -> Iterator[list[_Entry]]:
    """Give the entries, to be changed in place. Readers see the old file or the new one, whole."""
    refuse_no_file(path)
    with writing(path, _OWN_FOLDER), open(path.with_name(f"{path.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = list(_read(path)) if path.exists() else []
        yield entries
        _replace(path, "".join(f"{entry.line()}\n" for entry in entries))


def _replace(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _unreadable(path: Path, error: Exception) -> BadInput:
    hint = f"make it: kernel-smith serve tokens add {path} NAME"
    return BadInput(f"{path}: cannot be read ({reason_of(error)})", hint=hint)
