"""Clocks, power and temperature, sampled beside a measurement.

A clock that was held down explains a time that nothing else explains. Looking costs the device
nothing, and the calls into the driver's library leave the interpreter's lock to others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.evidence.nvml import NvmlDevice, Sample
from kernel_smith.records import Telemetry

_INTERVAL = 0.02

Number = TypeVar("Number", int, float)

# The bits of the driver's answer. Not here, because they are no trouble: 0x1, the device is idle;
# 0x2, the clock that someone chose; 0x100, the same for a display.
_THROTTLE_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "clock of other GPUs",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}


class TelemetrySampler:
    """`with TelemetrySampler(index) as sampler: ...`, and then `sampler.telemetry()`.

    Without the library or the driver nothing is sampled, and the telemetry says why.
    """

    def __init__(self, index: int = 0) -> None:
        self._index = index
        self._samples: list[Sample] = []
        self._missing = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            look = NvmlDevice(self._index).sample
        except MissingPrerequisite as error:
            self._missing = error.what
            return self
        self._stop.clear()
        self._thread = threading.Thread(
            target=self._run, args=(look,), name="telemetry", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self, look: Callable[[], Sample]) -> None:
        self._samples.append(look())
        while not self._stop.wait(_INTERVAL):
            self._samples.append(look())

    def telemetry(self) -> Telemetry:
        """What was seen until now."""
        if self._missing:
            return Telemetry(missing=self._missing)
        return summarise_samples(list(self._samples))


def summarise_samples(samples: Sequence[Sample]) -> Telemetry:
    if not samples:
        return Telemetry(missing="nothing was sampled")
    return Telemetry(
        samples=len(samples),
        sm_clock_mhz=_range(sample.sm_clock_mhz for sample in samples),
        memory_clock_mhz=_range(sample.memory_clock_mhz for sample in samples),
        power_watts=_highest(sample.power_watts for sample in samples),
        temperature_c=_highest(sample.temperature_c for sample in samples),
        throttled=throttle_names(sample.throttle_reasons or 0 for sample in samples),
    )


def throttle_names(masks: Iterable[int]) -> tuple[str, ...]:
    """The troubles that any of the answers names."""
    seen = 0
    for mask in masks:
        seen |= mask
    return tuple(name for bit, name in _THROTTLE_REASONS.items() if seen & bit)


def _range(values: Iterable[int | None]) -> tuple[int, int] | None:
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None


def _highest(values: Iterable[Number | None]) -> Number | None:
    return max((value for value in values if value is not None), default=None)
