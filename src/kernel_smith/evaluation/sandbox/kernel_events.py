"""The kernels that a profiled stretch of the candidate's process ran, as plain data.

torch's profiler writes its findings as a Chrome trace, the one form of them that holds registers,
shared memory, grid and block. A kernel is linked to the call that launched it by a correlation
number. Where that call lies within an operator of torch on the same thread, the kernel is the
library's; where not, it is authored, whatever its name is.
"""

from __future__ import annotations

import bisect
import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from torch.autograd.profiler import profile

_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_LAUNCHES = frozenset({"cuda_runtime", "cuda_driver"})
_OPERATOR = "cpu_op"
_LIBRARY = "aten::"
_GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch")

Event = Mapping[str, Any]
Thread = tuple[Any, Any]


def profiling() -> profile:
    """A profile of what runs within it, on the GPU and the CPU.

    `torch.profiler` would do the same, and import all of torch.compile first, which takes seconds.
    """
    return profile(use_device="cuda", use_kineto=True, acc_events=True)


def kernel_events(profiler: profile) -> list[dict[str, Any]]:
    """From a finished profile, in order of time.

    A profile can be read once: torch writes its trace only once.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))  # type: ignore[no-untyped-call]
        return parse_trace(json.loads(path.read_text(encoding="utf-8", errors="replace")))


def parse_trace(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Per kernel, copy and fill: name, start_us, end_us, grid, block, shared, registers, occupancy
    and inside_aten, which is None if launch or operators were not seen, and in graphs."""
    events: list[Event] = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    operators = _Operators(
        event
        for event in events
        if event.get("cat") == _OPERATOR and str(event.get("name")).startswith(_LIBRARY)
    )
    launches = {
        _argument(event, "correlation"): event for event in events if event.get("cat") in _LAUNCHES
    }
    found = [
        _describe(event, launches.get(_argument(event, "correlation")), operators)
        for event in events
        if event.get("cat") in _ON_DEVICE
    ]
    return sorted(found, key=lambda kernel: float(kernel["start_us"]))


class _Operators:
    """When each thread was inside an operator of the library."""

    def __init__(self, operators: Iterable[Event]) -> None:
        self._begins: dict[Thread, list[float]] = {}
        self._ends: dict[Thread, list[float]] = {}
        for operator in sorted(operators, key=lambda event: float(event["ts"])):
            begins = self._begins.setdefault(_thread(operator), [])
            ends = self._ends.setdefault(_thread(operator), [])
            begin, end = _span(operator)
            if ends and begin < ends[-1]:  # an operator that calls others
                ends[-1] = max(ends[-1], end)
            else:
                begins.append(begin)
                ends.append(end)

    def contain(self, launch: Event) -> bool | None:
        if not self._begins:  # even an allocation is an operator: they were not recorded
            return None
        moment = float(launch["ts"])
        place = bisect.bisect_right(self._begins.get(_thread(launch), []), moment) - 1
        return place >= 0 and moment < self._ends[_thread(launch)][place]


def _describe(event: Event, launch: Event | None, operators: _Operators) -> dict[str, Any]:
    begin, end = _span(event)
    inside: bool | None = None
    if launch is not None and not str(launch["name"]).startswith(_GRAPH_LAUNCHES):
        inside = operators.contain(launch)
    percent = _argument(event, "est. achieved occupancy %")
    return {
        "name": str(event["name"]),
        "start_us": begin,
        "end_us": end,
        "grid": list(_argument(event, "grid") or []),
        "block": list(_argument(event, "block") or []),
        "shared": _argument(event, "shared memory"),
        "registers": _argument(event, "registers per thread"),
        "occupancy": None if percent is None else percent / 100,
        "inside_aten": inside,
    }


def _span(event: Event) -> tuple[float, float]:
    begin = float(event["ts"])
    return begin, begin + float(event.get("dur", 0))


def _thread(event: Event) -> Thread:
    return event.get("pid"), event.get("tid")


def _argument(event: Event, name: str) -> Any:
    return event.get("args", {}).get(name)
