"""What making a seed gives: the candidate's text and what is worth knowing about it."""

from __future__ import annotations

from pydantic import Field

from kernel_smith.records import Candidate, VersionedRecord


class Seed(VersionedRecord):
    """A candidate that the framework's compiler wrote."""

    task: str
    backend: str
    source: str
    workloads: tuple[str, ...]
    kernels: int
    library_calls: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: dict[str, float] = Field(
        default={},
        description="workload -> the share of its result that was compared with the reference's",
    )
    torch: str

    @property
    def candidate(self) -> Candidate:
        return Candidate(backend=self.backend, source=self.source, name=f"{self.task}_seed.py")
