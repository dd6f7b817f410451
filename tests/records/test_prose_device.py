"""An evaluation on a GPU as text: how it was timed, what bounds it, and how the GPU was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kernel_smith.records import (
    BaselineSpeedup,
    BaselineTiming,
    Ceilings,
    Device,
    DeviceKernel,
    Distribution,
    Evaluation,
    Interval,
    Reason,
    Roofline,
    Telemetry,
    Timing,
    WorkloadTiming,
)
from kernel_smith.records.prose import render

MakeEvaluation = Callable[..., Evaluation]

FASTER = Interval(value=2.31, low=2.28, high=2.34)
PLAIN = Interval(value=1.2, low=1.1, high=1.3)
GPU = Device(
    name="NVIDIA H200",
    capability="9.0",
    memory_bytes=1 << 37,
    multiprocessors=132,
    l2_bytes=60 << 20,
    driver="580.1",
    runtime="13.0",
)
CEILINGS = Ceilings(
    device=GPU,
    copy_bytes_per_second=4.3e12,
    flops_per_second={"fp32": 5e13},
    launch_seconds=5e-7,
    measured_at=datetime(2026, 1, 2, tzinfo=UTC),
)


def baseline(name: str, plain: Interval | None = PLAIN) -> BaselineTiming:
    return BaselineTiming(
        baseline=name,
        speedup=FASTER,
        seconds=Distribution(p50=4.62e-5, p99=5e-5),
        plain_speedup=plain,
    )


def timing(*baselines: BaselineTiming, **changes: Any) -> Timing:
    fields: dict[str, Any] = {
        "workload": "rows4k",
        "weight": 1.0,
        "way": "replay",
        "candidate": Distribution(p50=2e-5, p99=2.2e-5),
        "plain_p50": 4.5e-5,
        "baselines": baselines or (baseline("eager"),),
        "rounds": 24,
        "calls": 1800,
    }
    workload = WorkloadTiming(**(fields | changes))
    overall = tuple(
        BaselineSpeedup(baseline=item.baseline, speedup=item.speedup) for item in workload.baselines
    )
    return Timing(speedups=overall, workloads=(workload,), cores=(1,))


@pytest.fixture
def make_on_gpu(make_evaluation: MakeEvaluation) -> MakeEvaluation:
    """A complete record of a Triton candidate; fields can be changed."""
    complete: dict[str, Any] = {
        "backend": "triton",
        "device": GPU,
        "timing": timing(),
        "ceilings": CEILINGS,
        "rooflines": (
            Roofline(
                workload="rows4k",
                bytes=61_000_000,
                flops=0,
                precision="fp32",
                launches=1.0,
                seconds=2e-5,
                bytes_per_second=3.05e12,
                flops_per_second=0.0,
                bound="memory",
                share=0.71,
                floor_seconds=1.42e-5,
            ),
        ),
        "device_kernels": (
            DeviceKernel(
                name="softmax_kernel", origin="authored", launches=1, share=1.0, seconds=1.9e-5
            ),
        ),
        "telemetry": Telemetry(samples=40, sm_clock_mhz=(1755, 1980)),
    }
    return lambda **changes: make_evaluation(**(complete | changes))


def test_a_replay_is_called_so_and_plain_calls_show_what_launching_takes(
    make_on_gpu: MakeEvaluation,
) -> None:
    text = render(make_on_gpu())
    assert "rows4k: 20 us per call (P99 22 us), replayed as a CUDA graph, 24 rounds" in text
    assert "a plain call takes 45 us, of which 25 us for launching" in text
    assert "2.31x the speed of eager (95%: 2.28 to 2.34); eager takes 46.2 us (P99 50 us)" in text
    assert "; plain calls: 1.20x (95%: 1.10 to 1.30)" in text


def test_calls_that_could_not_be_captured_are_called_plain(make_on_gpu: MakeEvaluation) -> None:
    plainly = timing(baseline("eager", plain=None), way="plain", plain_p50=None)
    text = render(make_on_gpu(timing=plainly))
    assert "plain calls with their launches, 24 rounds" in text
    assert "a plain call takes" not in text
    assert "CUDA graph" not in text
    assert "plain calls: " not in text


def test_a_plain_call_as_fast_as_a_replay_has_no_negative_cost(make_on_gpu: MakeEvaluation) -> None:
    text = render(make_on_gpu(timing=timing(plain_p50=1.99e-5)))
    assert "a plain call takes 19.9 us\n" in text
    assert "launching" not in text


def test_plain_calls_are_held_against_the_graph_and_not_against_its_plain_calls(
    make_on_gpu: MakeEvaluation,
) -> None:
    text = render(make_on_gpu(timing=timing(baseline("eager"), baseline("graph"))))
    assert "graph takes 46.2 us (P99 50 us); plain calls against it: 1.20x" in text


def test_the_limit_the_kernels_and_the_device_follow_the_times(make_on_gpu: MakeEvaluation) -> None:
    text = render(make_on_gpu())
    parts = ("Timing (", "Limits (NVIDIA H200", "Kernels on the device", "Device while timed (40")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "memory-bound at 71% of 4.30 TB/s; 1.4x from the limit" in text
    assert "100.0%  authored  softmax_kernel: 19 us per call, 1 launch" in text
    assert "Time by origin of the code" not in text


def test_a_clock_that_was_held_down_is_mentioned(make_on_gpu: MakeEvaluation) -> None:
    throttled = Telemetry(samples=40, sm_clock_mhz=(1200, 1980), throttled=("power cap",))
    assert "held down: power cap" in render(make_on_gpu(telemetry=throttled))
    assert "held down" not in render(make_on_gpu())


def test_nothing_is_said_about_a_device_that_was_not_observed(make_on_gpu: MakeEvaluation) -> None:
    text = render(make_on_gpu(rooflines=(), device_kernels=(), telemetry=None, ceilings=None))
    for absent in ("Limits", "Kernels on the device", "Device while timed", "\n\n"):
        assert absent not in text


def test_nothing_on_the_cpu_speaks_of_a_gpu(make_evaluation: MakeEvaluation) -> None:
    text = render(make_evaluation())
    for absent in ("CUDA", "launch", "plain call", "cold cache", "device"):
        assert absent not in text


def test_an_unstable_measurement_shows_its_evidence_too(make_on_gpu: MakeEvaluation) -> None:
    text = render(make_on_gpu(reason=Reason.TOO_NOISY))
    assert text.startswith("unstable: too-noisy: ")
    assert "Limits (NVIDIA H200" in text
