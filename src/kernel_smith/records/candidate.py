"""A candidate: one program that claims to do a task."""

from __future__ import annotations

from pydantic import Field

from kernel_smith.records.base import VersionedRecord, content_hash

MAX_SOURCE = 256 << 10


class Candidate(VersionedRecord):
    """A Python file with `class ModelNew`, for one backend; identified by its content."""

    backend: str = "cpp"
    source: str = Field(max_length=MAX_SOURCE)
    name: str = "candidate.py"

    @property
    def content_hash(self) -> str:
        return content_hash(self.backend, self.source)
