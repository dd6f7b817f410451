"""The device is described and watched; where that is impossible, the reason is told."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.judge.evidence import nvml
from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.evaluation.judge.evidence.nvml import NvmlDevice, Sample, compute_processes
from kernel_smith.evaluation.judge.evidence.telemetry import (
    TelemetrySampler,
    summarise_samples,
    throttle_names,
)

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


class FakeError(Exception):
    """Stands for the library's own error."""


class FakeLibrary(ModuleType):
    """A driver library with one device; `broken` names the functions that fail."""

    NVMLError = FakeError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, broken: frozenset[str]) -> None:
        super().__init__("pynvml")
        clocks = {1: 1980, 2: 3201}
        answers: dict[str, Any] = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetHandleByIndex": lambda index: f"device {index}",
            "nvmlDeviceGetHandleByUUID": lambda uuid: f"device {uuid}",
            "nvmlSystemGetDriverVersion": lambda: "580.1",
            "nvmlDeviceGetMaxClockInfo": lambda handle, clock: clocks[clock],
            "nvmlDeviceGetClockInfo": lambda handle, clock: clocks[clock] - 5,
            "nvmlDeviceGetPowerUsage": lambda handle: 612_400,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x4 | 0x1,
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
                SimpleNamespace(pid=7, usedGpuMemory=1024),
                SimpleNamespace(pid=9, usedGpuMemory=None),
            ],
        }
        for name, answer in answers.items():
            setattr(self, name, self._fail if name in broken else answer)

    def _fail(self, *arguments: Any) -> None:
        raise FakeError("Not Supported")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`install("nvmlInit", ...)`: a library in which these functions fail."""

    def put(*broken: str) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", FakeLibrary(frozenset(broken)))

    nvml._library.cache_clear()
    yield put
    nvml._library.cache_clear()


def test_a_sample_holds_what_the_driver_says(install: Any) -> None:
    install()
    device = NvmlDevice()
    assert device.sample() == Sample(1975, 3196, 612.4, 61, 0x5)
    assert (device.driver(), device.sm_clock_max_mhz()) == ("580.1", 1980)


def test_what_a_device_does_not_support_is_left_out(install: Any) -> None:
    install("nvmlDeviceGetPowerUsage", "nvmlDeviceGetMaxClockInfo")
    device = NvmlDevice()
    assert device.sample() == Sample(1975, 3196, None, 61, 0x5)
    assert device.sm_clock_max_mhz() is None


def test_processes_are_listed_with_their_memory(install: Any) -> None:
    install()
    assert compute_processes() == {7: 1024, 9: None}


@pytest.mark.parametrize(
    "broken", ["nvmlInit", "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetHandleByIndex"]
)
def test_a_driver_that_does_not_answer_is_a_missing_prerequisite(install: Any, broken: str) -> None:
    install(broken, "nvmlDeviceGetHandleByUUID")
    with pytest.raises(MissingPrerequisite, match="Not Supported"):
        compute_processes()


def test_without_the_package_the_remedy_is_named(
    install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingPrerequisite) as caught:
        NvmlDevice()
    assert "kernel-smith[cuda]" in caught.value.hint


def test_the_sampler_looks_until_it_is_left(install: Any) -> None:
    install()
    with TelemetrySampler() as sampler:
        while sampler.telemetry().samples < 3:
            time.sleep(0.005)
    seen = sampler.telemetry()
    time.sleep(0.05)
    assert sampler.telemetry() == seen
    assert seen.sm_clock_mhz == (1975, 1975)
    assert (seen.power_watts, seen.temperature_c) == (612.4, 61)
    assert seen.throttled == ("power cap",)
    assert seen.missing == ""


def test_a_block_that_takes_no_time_is_sampled_once_at_least(install: Any) -> None:
    install()
    with TelemetrySampler() as sampler:
        pass
    assert sampler.telemetry().samples >= 1


def test_without_a_driver_the_telemetry_says_why(install: Any) -> None:
    install("nvmlInit")
    with TelemetrySampler() as sampler:
        pass
    telemetry = sampler.telemetry()
    assert telemetry.samples == 0
    assert "NVML does not start" in telemetry.missing


@given(st.lists(st.integers(0, 0x7FF), max_size=5))
def test_every_trouble_that_was_seen_once_is_named_once(masks: list[int]) -> None:
    names = throttle_names(masks)
    assert len(set(names)) == len(names)
    assert set(names) == {name for mask in masks for name in throttle_names([mask])}


def test_idleness_and_chosen_clocks_are_no_trouble() -> None:
    assert throttle_names([0x1, 0x2, 0x100]) == ()
    assert throttle_names([0x40, 0x4]) == ("power cap", "hardware thermal slowdown")


def test_values_that_were_never_known_stay_unknown() -> None:
    telemetry = summarise_samples(
        [Sample(None, 3201, None, 50, None), Sample(1000, 3201, None, 60, 0)]
    )
    assert telemetry.sm_clock_mhz == (1000, 1000)
    assert telemetry.power_watts is None
    assert telemetry.temperature_c == 60
    assert summarise_samples([]).missing


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_there_is_nothing_to_describe() -> None:
    with pytest.raises(MissingPrerequisite, match="no GPU"):
        describe_device()


@pytest.mark.gpu
@on_a_gpu
def test_a_real_device_is_described() -> None:
    device = describe_device()
    assert device.name == torch.cuda.get_device_name(0)
    assert device.memory_bytes > 1 << 30
    assert device.l2_bytes > 1 << 20
    assert device.multiprocessors > 0


@pytest.mark.gpu
@on_a_gpu
def test_a_real_device_is_watched_while_it_works() -> None:
    pytest.importorskip("pynvml")
    x = torch.randn(2048, 2048, device="cuda")
    with TelemetrySampler() as sampler:
        while sampler.telemetry().samples < 3:
            x = torch.tanh(x @ x)
            torch.cuda.synchronize()
    telemetry = sampler.telemetry()
    assert telemetry.missing == ""
    assert telemetry.sm_clock_mhz is not None and telemetry.sm_clock_mhz[1] > 0
