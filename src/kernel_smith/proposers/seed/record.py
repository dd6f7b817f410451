"""What making a seed gives: the candidate's text and what is worth knowing about it."""

from __future__ import annotations

from pydantic import Field

from kernel_smith.records import Candidate, VersionedRecord


class Seed(VersionedRecord):
    """A candidate that the framework's compiler wrote."""

    task: str
    backend: str
    source: str
    without_library: str = Field(
        default="",
        description="the same with kernels of our own in place of library calls, where it has some",
    )
    workloads: tuple[str, ...]
    kernels: int
    library_calls: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: dict[str, float] = Field(
        default={},
        description="workload -> the share of its result that was compared with the reference's",
    )
    torch: str
    rewrites: tuple[str, ...] = Field(
        default=(),
        description="what the recipe `rewritten` did to the graph, or would do where it is another",
    )
    recipe: str = Field(default="default", description="what the compiler was told")

    @property
    def candidate(self) -> Candidate:
        kind = "seed" if self.recipe == "default" else self.recipe.replace("-", "_")
        return Candidate(backend=self.backend, source=self.source, name=f"{self.task}_{kind}.py")

    @property
    def authored_candidate(self) -> Candidate | None:
        """The one without library calls, if there is one beside the other."""
        if not self.without_library:
            return None
        name = f"{self.task}_own_kernels.py"
        return Candidate(backend=self.backend, source=self.without_library, name=name)
