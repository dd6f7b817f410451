"""The driver's management library (NVML), as far as the judge needs it.

A device is named by its index in CUDA, which counts only the devices that this process may see.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.errors import MissingPrerequisite


@dataclass(frozen=True)
class Sample:
    """One look at a device. None where this device or driver does not say."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    power_watts: float | None
    temperature_c: int | None
    throttle_reasons: int | None


class NvmlDevice:
    """One device. Raises MissingPrerequisite where the library or its driver is not there."""

    def __init__(self, index: int = 0) -> None:
        self._nvml = _library()
        try:
            self._handle = self._find(index)
        except self._nvml.NVMLError as error:
            raise _unavailable(f"the driver does not know CUDA device {index}: {error}") from None

    def _find(self, index: int) -> Any:
        if torch.cuda.is_available():
            uuid = torch.cuda.get_device_properties(index).uuid
            with contextlib.suppress(self._nvml.NVMLError):  # a part of a device has another name
                return self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        return self._nvml.nvmlDeviceGetHandleByIndex(index)

    def driver(self) -> str | None:
        version: str | None = self._ask(self._nvml.nvmlSystemGetDriverVersion)
        return version

    def sm_clock_max_mhz(self) -> int | None:
        nvml = self._nvml
        clock: int | None = self._ask(
            nvml.nvmlDeviceGetMaxClockInfo, self._handle, nvml.NVML_CLOCK_SM
        )
        return clock

    def sample(self) -> Sample:
        nvml, handle = self._nvml, self._handle
        milliwatts = self._ask(nvml.nvmlDeviceGetPowerUsage, handle)
        return Sample(
            sm_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            power_watts=None if milliwatts is None else milliwatts / 1000,
            temperature_c=self._ask(
                nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU
            ),
            throttle_reasons=self._ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
        )

    def processes(self) -> dict[int, int | None]:
        """Process id -> bytes of the device's memory that it holds."""
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._nvml.NVMLError as error:
            raise _unavailable(f"the driver does not list processes: {error}") from None
        return {process.pid: process.usedGpuMemory for process in running}

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except self._nvml.NVMLError:
            return None


def compute_processes(index: int = 0) -> dict[int, int | None]:
    """The processes that have a context on the device, with the bytes that each one holds.

    The driver counts in its own process ids. In a container with ids of its own they mean nothing,
    or the list is empty.
    """
    return NvmlDevice(index).processes()


@functools.cache
def _library() -> Any:
    try:
        import pynvml
    except ImportError:
        raise MissingPrerequisite(
            "the Python package nvidia-ml-py is not installed",
            hint="pip install 'kernel-smith[cuda]'",
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise _unavailable(f"NVML does not start: {error}") from None
    return pynvml


def _unavailable(what: str) -> MissingPrerequisite:
    return MissingPrerequisite(what, hint="see whether `nvidia-smi` lists the GPU")
