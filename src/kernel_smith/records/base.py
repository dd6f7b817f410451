"""What every record shares: immutability, strictness, a schema version, a content hash."""

from __future__ import annotations

import functools
import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION: Literal[1] = 1


class Record(BaseModel):
    """An immutable value. Unknown fields are refused, so that a typo never passes silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class VersionedRecord(Record):
    """A record that is stored or sent on its own, and so says which schema it follows."""

    schema_version: Literal[1] = SCHEMA_VERSION


@functools.lru_cache(maxsize=1024)
def content_hash(*parts: str) -> str:
    """Identify content: the SHA-256 of the parts, each preceded by its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
