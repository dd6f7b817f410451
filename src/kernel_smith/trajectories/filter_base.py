"""What a filter is, and what can be set about all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import Field

from kernel_smith.records import Record, TrainingStep


class FilterSettings(Record):
    """The thresholds of the filters. Ratios are of times: 1.1 is ten per cent faster."""

    least_gain: float = Field(
        default=1.0, ge=1, description="what is certain of the gain over the parent is above this"
    )
    slack: float = Field(
        default=0.03, ge=0, lt=1, description="how far below 1 a workload's gain may reach"
    )
    tail: float = Field(
        default=0.05, ge=0, description="by how much the P99 of a workload may be worse"
    )
    held_out: tuple[str, ...] = Field(
        default=(), description="names of tasks or families that are kept for testing"
    )
    held_out_references: tuple[str, ...] = Field(
        default=(),
        description="sources of tasks that are kept for testing, whatever a run calls them",
    )
    per_task: int | None = Field(
        default=500, ge=1, description="steps of one task, at most; null: any number"
    )
    per_family: int | None = Field(
        default=10_000, ge=1, description="steps of one family, at most; null: any number"
    )
    per_difficulty: int | None = Field(
        default=2_500,
        ge=1,
        description="steps of one family at one depth and of one size of gain, at most; null: any "
        "number",
    )


class Filter(ABC):
    """One rule. An instance serves one pass over the steps, since some remember what they saw."""

    name: ClassVar[str]
    explains: ClassVar[str]
    """What it keeps, in one sentence."""

    def __init__(self, settings: FilterSettings) -> None:
        self._settings = settings

    @abstractmethod
    def refuse(self, step: TrainingStep) -> str | None:
        """Why the step is left out; None: it is kept."""
