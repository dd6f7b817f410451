"""Want of memory: how a message tells of it, and the error that says so with figures."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_smith.errors import MissingPrerequisite

_SIGNS = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|not enough memory|bad_alloc"
    r"|virtual memory exhausted|cudaErrorMemoryAllocation|_ALLOC_FAILED"
    r"|Killed signal terminated program",  # how gcc tells that the kernel ended its compiler
    re.IGNORECASE,
)
_MUCH = 0.05  # of a device's memory: less in others' hands is no reason to blame them


@dataclass(frozen=True)
class Room:
    """How many bytes of memory were to be had, and how many there are; `name` says where."""

    name: str
    available: int
    total: int


@dataclass(frozen=True)
class Needs:
    """How many bytes the parts of a workload take; `outputs` is None where nobody knows."""

    parameters: int
    inputs: int
    outputs: int | None

    @property
    def least(self) -> int:
        """Count what has to be there at once, besides what the reference uses in between."""
        return 2 * self.parameters + self.inputs + (self.outputs or 0)


def tells_of_shortage(text: str) -> bool:
    """Tell whether the words of an error or of a log mean that memory ran out."""
    return _SIGNS.search(text) is not None


def not_enough_for(subject: str, device: str) -> str:
    """Say that something finds no room."""
    where = "the GPU" if device == "cuda" else "this machine"
    return f"{where} has not enough memory for {subject}"


def shortage(
    what: str, device: str, room: Room | None, needs: Needs | None = None
) -> MissingPrerequisite:
    """Make the error for memory that ran out on a device, `cuda` or `cpu`."""
    parts = [f"no seed: {what}"]
    if needs is not None:
        parts.append(_needed(needs))
    parts.append(_had(room))
    return MissingPrerequisite("; ".join(parts), hint=_remedy(room, needs, device))


def _needed(needs: Needs) -> str:
    takes = [f"its inputs take {_size(needs.inputs)}"]
    if needs.parameters:
        takes.append(f"its parameters {_size(needs.parameters)}, twice")
    if needs.outputs is not None:
        takes.append(f"its result {_size(needs.outputs)}")
    return f"{', '.join(takes)}, and what is computed in between comes on top"


def _had(room: Room | None) -> str:
    if room is None:
        return "how much was free cannot be told"
    free = f"{_size(room.available)} of {_size(room.total)} ({room.name}) were free for it"
    others = room.total - room.available
    if others <= _MUCH * room.total:
        return free
    return f"{free}, and others hold {_size(others)}"


def _remedy(room: Room | None, needs: Needs | None, device: str) -> str:
    """Say what helps: a bigger device, or to end whoever holds this one."""
    smaller = "choose a smaller --workload, or make the task's sizes smaller"
    bigger = "a GPU with more memory" if device == "cuda" else "a machine with more memory"
    if room is not None:
        too_big = needs is not None and needs.least > room.total
        if too_big or room.total - room.available <= _MUCH * room.total:
            return f"{smaller}, or use {bigger}"
    who = "nvidia-smi names" if device == "cuda" else "top names"
    return f"end what else uses the memory ({who} it) or wait until it is done; or {smaller}"


def _size(count: int) -> str:
    if count < 100_000_000:
        return f"{count / 1e6:.3g} MB"
    return f"{count / 1e9:.1f} GB"
