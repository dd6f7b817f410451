"""The kernels that a candidate ran, summed up.

The events come from the candidate's own process (`sandbox/kernel_events.py`): they are checked for
their form, and believed only as an explanation. A kernel counts as authored if it was launched
outside of torch's operators. Its name says nothing, since anybody may choose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from kernel_smith.records import DeviceKernel
from kernel_smith.records.base import Record

_LONGEST_NAME = 200
_MOST_KERNELS = 64

Count = Annotated[int, Field(ge=0)]
Origin = Literal["authored", "library", "unknown"]


class KernelEvent(Record):
    """One run of one kernel."""

    name: str
    start_us: float = Field(allow_inf_nan=False)
    end_us: float = Field(allow_inf_nan=False)
    grid: tuple[Count, ...] = Field(default=(), max_length=3)
    block: tuple[Count, ...] = Field(default=(), max_length=3)
    shared: Count | None = None
    registers: Count | None = None
    occupancy: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    inside_aten: bool | None = None

    @property
    def seconds(self) -> float:
        return max(0.0, self.end_us - self.start_us) * 1e-6


class Compiled(NamedTuple):
    """What the compiler said about a kernel. None where it did not say."""

    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None


class _Group(NamedTuple):
    """What runs must share to be one kernel in the summary."""

    name: str
    origin: Origin
    grid: tuple[int, ...]
    block: tuple[int, ...]


def summarise_kernels(
    events: Iterable[Mapping[str, Any]], calls: int, resources: Mapping[str, Compiled] | None = None
) -> tuple[DeviceKernel, ...]:
    """What `calls` calls ran, the longest first; `resources` by the kernel's name.

    Raises ValueError (pydantic's) where an event does not have the form of one.
    """
    groups: dict[_Group, list[KernelEvent]] = {}
    for item in events:
        event = KernelEvent.model_validate(item)
        groups.setdefault(_group(event), []).append(event)
    total = sum(event.seconds for runs in groups.values() for event in runs)
    kernels = [
        _kernel(group, runs, calls, total, (resources or {}).get(group.name, Compiled()))
        for group, runs in groups.items()
    ]
    kernels.sort(key=lambda kernel: (-kernel.seconds, kernel.name))
    return tuple(kernels[:_MOST_KERNELS])


def _group(event: KernelEvent) -> _Group:
    origin: Origin = "unknown"
    if event.inside_aten is not None:
        origin = "library" if event.inside_aten else "authored"
    return _Group(event.name[:_LONGEST_NAME], origin, event.grid, event.block)


def _kernel(
    group: _Group, runs: Sequence[KernelEvent], calls: int, total: float, compiled: Compiled
) -> DeviceKernel:
    spent = sum(event.seconds for event in runs)
    first = runs[0]
    return DeviceKernel(
        name=group.name,
        origin=group.origin,
        launches=len(runs) / calls,
        share=min(1.0, spent / total) if total else 0.0,
        seconds=spent / calls,
        registers=_first(first.registers, compiled.registers),
        spills=compiled.spills,
        shared_bytes=_first(first.shared, compiled.shared_bytes),
        occupancy=None if first.occupancy is None else min(1.0, first.occupancy),
        grid=group.grid,
        block=group.block,
    )


def _first(observed: int | None, compiled: int | None) -> int | None:
    return compiled if observed is None else observed
