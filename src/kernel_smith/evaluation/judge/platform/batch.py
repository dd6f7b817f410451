"""A batch of calls: what it left behind, and what it took."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from kernel_smith.evaluation.judge.platform.result_watch import Looks
from kernel_smith.evaluation.judge.processes.child import ChildFailed


@dataclass(frozen=True)
class Windows:
    """Wall and processor seconds of one batch, as the judge and the operating system saw them."""

    run_wall: float  # without the time that neighbours took
    run_cpu: float
    service_cpu: float  # looking up arguments and copying results: the same for everyone
    idle_cpu: float  # while nobody asked for anything
    switching_wall: float = 0.0  # of handing a device over, and taking it back
    waited: float = 0.0  # that judge and process were kept waiting for a core, all of it included
    fresh_bytes: float = 0.0  # of results, in memory where none had lain before


@dataclass(frozen=True)
class Batch:
    """What a batch of calls left behind."""

    calls: int
    windows: Windows
    first: dict[str, Any] | None
    odd: list[Any]
    inner_seconds: float
    shared: frozenset[int] = frozenset()
    """Outputs that were seen to change with the inputs: they lie in the same memory."""
    overlapping: frozenset[int] = frozenset()
    """Outputs that lie in the memory of another result, or several times in the same."""
    looks: Looks | None = None


class Watcher(Protocol):
    """Something to switch on while the calls of a batch run."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


def described(gathered: dict[str, Any], count: int, windows: Windows) -> Batch:
    """Read the process's own account of a batch; a malformed one is a protocol violation."""
    try:
        first, odd = gathered["first"], list(gathered["odd"])
        inner = float(gathered["inner"])
        if not math.isfinite(inner):
            raise ValueError(f"{inner} seconds per call")
        complete = int(gathered["count"]) == count
        if odd:
            _, _ = odd
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ChildFailed("protocol", f"malformed report of a batch: {error}") from None
    if not complete:
        raise ChildFailed("protocol", "the number of results differs from the number of calls")
    return Batch(count, windows, first, odd, inner)
