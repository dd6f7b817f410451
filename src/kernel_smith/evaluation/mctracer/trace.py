"""mcTracer's trace, an event per launch, as records.

It covers the whole process. The call begins after the last kernel of `torch.cuda._sleep`, which the
watched program launches as a mark. Its times are in units that differ between versions of the tool:
they tell the order of launches and their shares, and no seconds.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.records import TracedKernel

_MARK = "spin_kernel"
_CATEGORIES = ("gpu_op", "kernel")
_END = "]}"


class _Launch(NamedTuple):
    name: str
    start: float
    duration: float


def read_trace(text: str) -> tuple[TracedKernel, ...]:
    """The kernels after the mark, those that took most first."""
    launches = [launch for event in _events(text) if (launch := _launch(event)) is not None]
    marks = [launch.start for launch in launches if _MARK in launch.name]
    if not marks:
        raise _unusable("mcTracer's trace does not show where the call begins")
    of_the_call = [launch for launch in launches if launch.start > max(marks)]
    if not of_the_call:
        raise _unusable("mcTracer saw no kernel of the candidate")
    return _by_name(of_the_call)


def _events(text: str) -> list[Any]:
    try:
        trace = json.loads(text)
    except ValueError as problem:
        try:
            trace = json.loads(text + _END)  # the tool was interrupted before it wrote the end
        except ValueError:
            raise _unusable(f"mcTracer's trace cannot be read: {problem}") from None
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise _unusable("mcTracer's trace cannot be read: it has no list of traceEvents")
    return events


def _launch(event: Any) -> _Launch | None:
    """None for whatever is not a kernel: calls of the runtime, counters, names of threads."""
    if not isinstance(event, dict) or event.get("ph") != "X":
        return None
    if event.get("cat") not in _CATEGORIES:
        return None
    start, duration = event.get("ts"), event.get("dur")
    if not isinstance(start, int | float) or not isinstance(duration, int | float):
        return None
    if not 0 <= duration < math.inf:
        return None
    details = event.get("args")
    real_name = details.get("name") if isinstance(details, dict) else None
    return _Launch(str(real_name or event.get("name", "")), start, duration)


def _by_name(launches: list[_Launch]) -> tuple[TracedKernel, ...]:
    durations: dict[str, list[float]] = {}
    for launch in launches:
        durations.setdefault(launch.name, []).append(launch.duration)
    total = sum(sum(of_one) for of_one in durations.values())
    kernels = (
        TracedKernel(name=name, launches=len(of_one), share=sum(of_one) / total if total else 0.0)
        for name, of_one in durations.items()
    )
    return tuple(sorted(kernels, key=lambda kernel: kernel.share, reverse=True))


def _unusable(what: str) -> MissingPrerequisite:
    return MissingPrerequisite(what, hint="leave out --mctracer")
