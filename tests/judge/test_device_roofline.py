"""A workload is held against the limit that bounds it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.evidence.roofline import roofline
from kernel_smith.evaluation.judge.evidence.work import Work
from kernel_smith.records import Ceilings, Device
from kernel_smith.records.device_prose import render_roofline

CEILINGS = Ceilings(
    device=Device(
        name="A GPU",
        capability="9.0",
        memory_bytes=1 << 37,
        multiprocessors=132,
        l2_bytes=60 << 20,
        driver="580.1",
        runtime="13.0",
    ),
    copy_bytes_per_second=4e12,
    flops_per_second={"fp32": 5e13, "bf16": 8e14},
    launch_seconds=1e-6,
    measured_at=datetime(2026, 1, 2, tzinfo=UTC),
)

works = st.builds(
    Work,
    floor_bytes=st.integers(0, 10**9),
    traffic_bytes=st.integers(0, 10**12),
    flops=st.integers(0, 10**16),
    precision=st.sampled_from(["fp64", "fp32", "bf16", "fp8"]),
)


def work(traffic_bytes: int = 0, flops: int = 0, precision: str = "bf16") -> Work:
    return Work(floor_bytes=0, traffic_bytes=traffic_bytes, flops=flops, precision=precision)


def test_much_traffic_is_bound_by_memory() -> None:
    item = roofline(work(4 * 10**9, 10**9), CEILINGS, 2e-3, "w")
    assert (item.bound, item.share) == ("memory", pytest.approx(0.5))
    assert item.floor_seconds == pytest.approx(1e-3)
    assert item.bytes_per_second == pytest.approx(2e12)


def test_many_products_are_bound_by_computing_at_their_precision() -> None:
    coarse = roofline(work(10**6, 8 * 10**11), CEILINGS, 2e-3, "w")
    assert (coarse.bound, coarse.share) == ("compute", pytest.approx(0.5))
    fine = roofline(work(10**6, 8 * 10**11, "fp32"), CEILINGS, 3.2e-2, "w")
    assert (fine.bound, fine.share) == ("compute", pytest.approx(0.5))


def test_little_work_in_about_the_time_of_its_launches_is_bound_by_launching() -> None:
    item = roofline(work(1000), CEILINGS, 4e-6, "w", launches=3)
    assert (item.bound, item.share, item.launches) == ("launch", pytest.approx(0.75), 3)


def test_little_work_in_a_long_time_is_not_excused_by_launching() -> None:
    item = roofline(work(1000), CEILINGS, 6e-6, "w")
    assert item.bound == "memory"
    assert item.share < 1e-3


def test_a_precision_that_was_not_measured_is_held_against_the_fastest() -> None:
    item = roofline(work(0, 8 * 10**11, "fp8"), CEILINGS, 2e-3, "w")
    assert (item.precision, item.share) == ("bf16", pytest.approx(0.5))


def test_without_measured_products_memory_is_the_limit() -> None:
    bare = CEILINGS.model_copy(update={"flops_per_second": {}})
    assert roofline(work(4 * 10**9, 10**15), bare, 2e-3, "w").bound == "memory"


@given(works, st.floats(1e-7, 10), st.floats(0, 100))
def test_shares_and_floors_agree_and_can_be_told(
    counted: Work, seconds: float, launches: float
) -> None:
    item = roofline(counted, CEILINGS, seconds, "w", launches)
    assert item.floor_seconds >= counted.traffic_bytes / CEILINGS.copy_bytes_per_second
    if item.bound == "launch":
        assert item.share * seconds > item.floor_seconds
    else:
        assert item.share * seconds == pytest.approx(item.floor_seconds)
    assert "  w: " in render_roofline([item], CEILINGS)
