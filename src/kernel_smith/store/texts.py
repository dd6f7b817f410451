"""Long texts, once per content, deflated.

The texts of one kind in a run resemble one another: programs descend from the same start, and
evaluations name the same machine. Each is therefore compressed against the first of its kind in
the run that is not tiny. A text that others are based on has no base itself, so reading one takes
two steps at most.
"""

from __future__ import annotations

import functools
import hashlib
import sqlite3
import zlib
from collections import OrderedDict
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_LEVEL = 6
_LOOK_AHEAD = 262  # bytes of its window that zlib keeps for what comes
_USEFUL_BASE = 256  # bytes; nothing is gained by a shorter one
_REMEMBERED_HASHES = 4096
_REMEMBERED_TEXTS = 64
_REMEMBERED_DIGESTS = 16  # a run's system prompt comes again and again


class Texts:
    """Reads and writes the tables `texts` and `bases` through somebody's connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._ids: OrderedDict[bytes, int] = OrderedDict()
        self._bases: dict[tuple[int, str], tuple[int, bytes]] = {}
        self._contents: OrderedDict[int, str] = OrderedDict()

    def forget(self) -> None:
        """After a rollback: what was noted of new texts is no longer true."""
        self._ids.clear()
        self._bases.clear()
        self._contents.clear()

    def keep(self, run: int, kind: str, content: str) -> int:
        """Return the id of this text, stored now if it is new. Inside a transaction."""
        digest = _digest(content)
        known = self._ids.get(digest)
        if known is not None:
            self._ids.move_to_end(digest)
            return known
        data = content.encode()
        text = self._insert(run, kind, digest, content, data)
        _remember(self._ids, digest, text, _REMEMBERED_HASHES)
        if len(data) >= _USEFUL_BASE and self._base(run, kind) is None:
            self._connection.execute(
                "INSERT INTO bases SELECT ?, ?, coalesce(base, id) FROM texts WHERE id = ?",
                (run, kind, text),
            )
        return text

    def fetch(self, text: int) -> str:
        if text in self._contents:
            self._contents.move_to_end(text)
            return self._contents[text]
        row = self._connection.execute(
            "SELECT base, content FROM texts WHERE id = ?", (text,)
        ).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("database disk image is malformed")
        base, stored = row
        content = inflate(stored, self.fetch(base).encode() if base is not None else b"")
        _remember(self._contents, text, content, _REMEMBERED_TEXTS)
        return content

    def _insert(self, run: int, kind: str, digest: bytes, content: str, data: bytes) -> int:
        base, dictionary = self._base(run, kind) or (None, b"")
        stored = deflate(content, data, dictionary)
        if isinstance(stored, str):
            base = None
        # Most texts are new, so nobody looks first whether one is there.
        inserted = self._connection.execute(
            "INSERT INTO texts (hash, base, content) VALUES (?, ?, ?) "
            "ON CONFLICT (hash) DO NOTHING",
            (digest, base, stored),
        )
        if inserted.rowcount and inserted.lastrowid is not None:
            return inserted.lastrowid
        statement = "SELECT id FROM texts WHERE hash = ?"
        return int(self._connection.execute(statement, (digest,)).fetchone()[0])

    def _base(self, run: int, kind: str) -> tuple[int, bytes] | None:
        known = self._bases.get((run, kind))
        if known is None:
            statement = "SELECT text FROM bases WHERE run = ? AND kind = ?"
            row = self._connection.execute(statement, (run, kind)).fetchone()
            if row is None:
                return None
            known = self._bases[run, kind] = (int(row[0]), self.fetch(int(row[0])).encode())
        return known


@functools.lru_cache(maxsize=_REMEMBERED_DIGESTS)
def _digest(content: str) -> bytes:
    return hashlib.blake2b(content.encode(), digest_size=16).digest()


def deflate(content: str, data: bytes, dictionary: bytes = b"") -> str | bytes:
    """Deflated where that is shorter, plain otherwise."""
    # Clearing memory for the largest window takes longer than compressing a short text.
    bits = min(max((len(dictionary) + len(data) + _LOOK_AHEAD).bit_length(), 9), zlib.MAX_WBITS)
    shape = _LEVEL, zlib.DEFLATED, bits, bits - zlib.MAX_WBITS + zlib.DEF_MEM_LEVEL
    packer = zlib.compressobj(*shape, zdict=dictionary) if dictionary else zlib.compressobj(*shape)
    packed = packer.compress(data) + packer.flush()
    return packed if len(packed) < len(data) else content


def inflate(stored: str | bytes, dictionary: bytes = b"") -> str:
    if isinstance(stored, str):
        return stored
    unpacker = zlib.decompressobj(zdict=dictionary) if dictionary else zlib.decompressobj()
    return (unpacker.decompress(stored) + unpacker.flush()).decode()


def _remember(notes: OrderedDict[Key, Value], key: Key, value: Value, limit: int) -> None:
    notes[key] = value
    if len(notes) > limit:
        notes.popitem(last=False)
