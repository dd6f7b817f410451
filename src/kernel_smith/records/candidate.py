"""A candidate: one program that claims to do a task."""

from __future__ import annotations

from pydantic import Field

from kernel_smith.records.base import VersionedRecord, content_hash

# A network of a hundred layers, each with kernels of its own shapes, has half of this.
MAX_SOURCE = 1 << 20


class Candidate(VersionedRecord):
    """A Python file with `class ModelNew`, for one backend; identified by its content."""

    backend: str = "cpp"
    source: str = Field(max_length=MAX_SOURCE)
    name: str = "candidate.py"

    @property
    def content_hash(self) -> str:
        return content_hash(self.backend, self.source)
