"""What has changed between two states of a run's page, for browsers that have the former.

Most of a page is arrays that grow at their end, with an entry changed here and there. So each array
is sent as its new entries, and those before them that are others now.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kernel_smith.records import Record
from kernel_smith.viewer.records import RunPage

_COLUMNS = "steps"

Data = dict[str, Any]
"""A page as JSON has it."""


class ArrayChange(Record):
    size: int = Field(description="entries that there are now")
    changed: dict[int, Any] = Field(description="by position, below the former size")
    added: list[Any]


class RunChange(Record):
    """Makes the page of `base` the one of `sequence`."""

    base: int = Field(description="the last event that the browser knows of")
    sequence: int
    values: dict[str, Any] = Field(description="fields that are others now")
    arrays: dict[str, ArrayChange] = Field(description="fields that are arrays")
    columns: dict[str, ArrayChange] = Field(description="of the steps")


def as_data(page: RunPage) -> Data:
    """Return a page as it is compared and sent."""
    return page.model_dump(mode="json")


def changes(before: Data, after: Data) -> RunChange:
    """Return what makes one state of a page the next."""
    others = {
        name: value
        for name, value in after.items()
        if name not in (_COLUMNS, "sequence") and before[name] != value
    }
    return RunChange(
        base=before["sequence"],
        sequence=after["sequence"],
        values={name: value for name, value in others.items() if not isinstance(value, list)},
        arrays=_arrays(before, {n: v for n, v in others.items() if isinstance(v, list)}),
        columns=_arrays(before[_COLUMNS], after[_COLUMNS]),
    )


def _arrays(before: Data, after: Data) -> dict[str, ArrayChange]:
    return {
        name: _array_change(before[name], value)
        for name, value in after.items()
        if before[name] != value
    }


def _array_change(before: list[Any], after: list[Any]) -> ArrayChange:
    return ArrayChange(
        size=len(after),
        changed={
            position: new
            for position, (old, new) in enumerate(zip(before, after, strict=False))
            if old != new
        },
        added=after[len(before) :],
    )
