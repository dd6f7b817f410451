"""Records about a device survive JSON, and read as advice to whoever writes the next kernel."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from kernel_smith.records import (
    Ceilings,
    CompiledKernel,
    Device,
    DeviceKernel,
    Record,
    Roofline,
    Telemetry,
)
from kernel_smith.records.device_prose import (
    render_compiled,
    render_kernels,
    render_roofline,
    render_telemetry,
)
from kernel_smith.records.schema_files import FOLDER

DEVICE = Device(
    name="A GPU",
    capability="9.0",
    memory_bytes=1 << 37,
    multiprocessors=132,
    l2_bytes=60 << 20,
    driver="580.1",
    runtime="13.0",
    sm_clock_max_mhz=1980,
)
CEILINGS = Ceilings(
    device=DEVICE,
    copy_bytes_per_second=4.3e12,
    flops_per_second={"fp32": 5e13, "bf16": 7.87e14},
    launch_seconds=1.2e-6,
    versions={"torch": "2.13.0"},
    measured_at=datetime(2026, 1, 2, tzinfo=UTC),
)
KERNEL = DeviceKernel(
    name="softmax_kernel",
    origin="authored",
    launches=1,
    share=0.75,
    seconds=3e-5,
    registers=48,
    spills=0,
    shared_bytes=2048,
    occupancy=0.5,
    grid=(4096, 1, 1),
    block=(128, 1, 1),
)
TELEMETRY = Telemetry(
    samples=12,
    sm_clock_mhz=(1755, 1980),
    memory_clock_mhz=(3201, 3201),
    power_watts=612.4,
    temperature_c=61,
)


def line(**changes: Any) -> Roofline:
    fields: dict[str, Any] = {
        "workload": "rows4k",
        "bytes": 10**9,
        "flops": 10**12,
        "precision": "bf16",
        "launches": 1.0,
        "seconds": 1e-3,
        "bytes_per_second": 1e12,
        "flops_per_second": 1e15,
        "bound": "memory",
        "share": 0.71,
        "floor_seconds": 7.1e-4,
    }
    return Roofline(**(fields | changes))


@pytest.mark.parametrize(
    "record", [DEVICE, CEILINGS, KERNEL, TELEMETRY, Telemetry(missing="no driver"), line()]
)
def test_records_come_back_from_json_as_they_went_in(record: Record) -> None:
    assert type(record).model_validate_json(record.model_dump_json()) == record


def test_ceilings_satisfy_their_schema() -> None:
    schema = json.loads((FOLDER / "ceilings.json").read_text())
    data = CEILINGS.model_dump(mode="json")
    jsonschema.validate(data, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | {"copy_bytes_per_second": 0}, schema)


@pytest.mark.parametrize(
    ("record", "change"),
    [
        (DEVICE, {"capability": "sm_90"}),
        (DEVICE, {"kind": "tpu"}),
        (KERNEL, {"share": 1.2}),
        (KERNEL, {"origin": "vendor"}),
        (line(), {"bound": "luck"}),
        (line(), {"seconds": 0}),
    ],
)
def test_nonsense_is_refused(record: Record, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        type(record).model_validate(record.model_dump() | change)


def test_a_memory_bound_workload_says_how_far_the_bandwidth_is() -> None:
    text = render_roofline([line()], CEILINGS)
    assert "rows4k: memory-bound at 71% of 4.30 TB/s; 1.4x from the limit" in text
    assert "Next: wider, contiguous loads" in text


def test_a_compute_bound_workload_names_its_precision() -> None:
    text = render_roofline([line(bound="compute", share=0.63)], CEILINGS)
    assert "compute-bound at 63% of 787 TFLOP/s (bf16)" in text
    assert "Next: keep the matrix units busy" in text


def test_a_launch_bound_workload_counts_its_launches() -> None:
    item = line(bound="launch", launches=3.0, seconds=5e-6, floor_seconds=1e-7, share=0.72)
    text = render_roofline([item], CEILINGS)
    assert "launch-bound: 3 launches take at least 3.6 us of 5 us" in text
    assert "Next: fuse the kernels" in text
    single = item.model_copy(update={"launches": 1.0})
    assert "1 launch takes" in render_roofline([single], CEILINGS)
    assert "fuse" not in render_roofline([single], CEILINGS)


def test_several_kernels_that_are_bound_by_memory_should_be_fused() -> None:
    assert "Next: fuse" in render_roofline([line(launches=4.0)], CEILINGS)


def test_at_the_limit_only_less_work_helps() -> None:
    text = render_roofline([line(share=0.95)], CEILINGS)
    assert "at the limit" in text
    assert "only get faster by moving less" in text


def test_a_share_beyond_the_limit_is_explained() -> None:
    assert "beyond the limit" in render_roofline([line(share=1.6)], CEILINGS)


def test_what_no_limit_explains_is_said_plainly() -> None:
    item = line(seconds=8e-5, floor_seconds=2e-7, share=0.0025)
    text = render_roofline([item], CEILINGS)
    assert "far from every limit: 80 us for what could take 200 ns (memory)" in text
    assert "Next: start enough blocks" in text
    several = item.model_copy(update={"launches": 9.0, "bound": "compute"})
    assert "Next: fuse" in render_roofline([several], CEILINGS)


def test_the_hint_is_for_the_workload_that_is_farthest_from_its_limit() -> None:
    near = line(workload="near", share=0.97)
    far = line(workload="far", share=0.3, floor_seconds=3e-4, bound="compute")
    tiny = line(workload="tiny", share=0.2, bound="launch")
    text = render_roofline([near, far, tiny], CEILINGS)
    assert "Next (far): keep the matrix units busy" in text


def test_kernels_are_listed_with_their_origin_and_resources() -> None:
    library = DeviceKernel(name="g" * 300, origin="library", launches=2.5, share=0.25, seconds=1e-5)
    text = render_kernels([KERNEL, library])
    assert "75% authored, 25% library" in text
    assert "softmax_kernel: 30 us per call, 1 launch\n" in text
    assert "grid 4096x1x1 of 128x1x1 threads, 48 registers, 2 KiB shared, occupancy 50%" in text
    assert "2.5 launches" in text
    assert "g" * 100 not in text


def test_spilled_registers_are_mentioned_and_small_kernels_are_only_counted() -> None:
    spilling = KERNEL.model_copy(update={"spills": 16})
    tiny = KERNEL.model_copy(update={"name": "tiny", "share": 0.001})
    text = render_kernels([spilling, tiny])
    assert "16 spilled" in text
    assert "tiny" not in text
    assert "and 1 more" in text


def test_nothing_to_tell_is_no_text() -> None:
    assert render_roofline([], CEILINGS) == ""
    assert render_kernels([]) == ""


def test_telemetry_is_one_line_unless_the_clock_was_held_down() -> None:
    calm = render_telemetry(TELEMETRY)
    assert "SM clock 1755 to 1980 MHz, memory clock 3201 MHz, up to 612 W, up to 61 C" in calm
    assert "\n" not in calm
    hot = render_telemetry(TELEMETRY.model_copy(update={"throttled": ("power cap",)}))
    assert "held down: power cap" in hot


def test_missing_telemetry_says_why() -> None:
    text = render_telemetry(Telemetry(missing="no driver"))
    assert text == "Device while timed: not observed (no driver)."


def test_what_compilers_say_of_kernels_is_told_where_nothing_was_profiled() -> None:
    kernels = (
        CompiledKernel(name="rows", registers=168, spill_bytes=24, shared_bytes=2048),
        CompiledKernel(name="rows", registers=168, spill_bytes=24, shared_bytes=2048),
        CompiledKernel(name="launcher"),
    )
    told = render_compiled(kernels, DEVICE)
    assert told.splitlines()[1:] == [
        "  rows: 168 registers, 24 bytes spilled, 2 KiB shared per block, registers leave room for "
        "19% of a multiprocessor's warps"
    ]
    assert "leave room" not in render_compiled(kernels, None)
    assert render_compiled(kernels[2:], DEVICE) == ""
