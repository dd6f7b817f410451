"""The device, described by torch and by its driver."""

from __future__ import annotations

import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.evidence.nvml import NvmlDevice
from kernel_smith.inline.gpu import vendor_of_torch
from kernel_smith.records import Device

_UNKNOWN = "unknown"


def describe_device(index: int = 0) -> Device:
    """Raises MissingPrerequisite where torch sees no GPU."""
    if not torch.cuda.is_available():
        raise MissingPrerequisite(
            "torch sees no GPU", hint="see what `kernel-smith doctor` says about it"
        )
    properties = torch.cuda.get_device_properties(index)
    driver, clock = _from_driver(index)
    return Device(
        name=properties.name,
        capability=f"{properties.major}.{properties.minor}",
        memory_bytes=properties.total_memory,
        multiprocessors=properties.multi_processor_count,
        l2_bytes=properties.L2_cache_size,
        driver=driver,
        runtime=getattr(torch.version, vendor_of_torch(), None) or _UNKNOWN,
        sm_clock_max_mhz=clock,
    )


def _from_driver(index: int) -> tuple[str, int | None]:
    """Its version, and the highest clock."""
    try:
        device = NvmlDevice(index)
    except MissingPrerequisite:
        return _UNKNOWN, None
    return device.driver() or _UNKNOWN, device.sm_clock_max_mhz()
