"""Kernels are summed up from events that an untrusted process has sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.evidence.kernels import Compiled, summarise_kernels


def event(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": "softmax_kernel",
        "start_us": 10.0,
        "end_us": 40.0,
        "grid": [64, 1, 1],
        "block": [128, 1, 1],
        "shared": 512,
        "registers": 40,
        "occupancy": 0.5,
        "inside_aten": False,
    }
    return plain | changes


def test_runs_of_one_kernel_are_one_line_per_call() -> None:
    (kernel,) = summarise_kernels([event(), event(start_us=50.0, end_us=70.0)], calls=2)
    assert kernel.launches == 1
    assert kernel.seconds == pytest.approx(25e-6)
    assert kernel.share == 1
    assert (kernel.grid, kernel.block) == ((64, 1, 1), (128, 1, 1))
    assert (kernel.registers, kernel.shared_bytes, kernel.occupancy) == (40, 512, 0.5)


def test_the_launcher_decides_the_origin_and_not_the_name() -> None:
    kernels = summarise_kernels(
        [
            event(name="my_kernel", inside_aten=True, end_us=11.0),
            event(name="cutlass::gemm", inside_aten=False, end_us=12.0),
            event(name="graph_kernel", inside_aten=None, end_us=13.0),
        ],
        calls=1,
    )
    origins = {kernel.name: kernel.origin for kernel in kernels}
    assert origins == {
        "my_kernel": "library",
        "cutlass::gemm": "authored",
        "graph_kernel": "unknown",
    }


def test_the_longest_kernel_comes_first_and_another_grid_is_another_line() -> None:
    events = [event(), event(grid=[1, 1, 1], end_us=100.0), event(name="copy", grid=[], block=[])]
    kernels = summarise_kernels(events, calls=1)
    assert [kernel.grid for kernel in kernels] == [(1, 1, 1), (), (64, 1, 1)]


def test_what_the_profiler_does_not_know_the_compiler_may() -> None:
    compiled = {"softmax_kernel": Compiled(registers=99, spills=8, shared_bytes=1024)}
    (kernel,) = summarise_kernels([event(registers=None, shared=None)], 1, compiled)
    assert (kernel.registers, kernel.spills, kernel.shared_bytes) == (99, 8, 1024)
    (kernel,) = summarise_kernels([event()], 1, compiled)
    assert (kernel.registers, kernel.spills, kernel.shared_bytes) == (40, 8, 512)


def test_no_events_are_no_kernels_and_no_time_is_no_share() -> None:
    assert summarise_kernels([], calls=3) == ()
    (kernel,) = summarise_kernels([event(end_us=10.0)], calls=1)
    assert (kernel.share, kernel.seconds) == (0, 0)


def test_names_and_their_number_are_bounded() -> None:
    events = [event(name=f"{number:03}" + "x" * 10_000) for number in range(200)]
    kernels = summarise_kernels(events, calls=1)
    assert len(kernels) == 64
    assert all(len(kernel.name) == 200 for kernel in kernels)


@pytest.mark.parametrize(
    "change",
    [
        {"name": 3},
        {"start_us": "soon"},
        {"end_us": float("inf")},
        {"grid": [1, 1, 1, 1]},
        {"grid": [-1]},
        {"registers": -1},
        {"occupancy": float("nan")},
        {"verdict": "fast"},
    ],
)
def test_events_of_another_form_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        summarise_kernels([event(**change)], calls=1)


nanoseconds = st.integers(0, 10**9).map(lambda count: count / 1000)


@given(
    st.lists(
        st.builds(
            event,
            name=st.sampled_from("abc"),
            start_us=nanoseconds,
            end_us=nanoseconds,
            occupancy=st.none() | st.floats(0, 3),
            inside_aten=st.none() | st.booleans(),
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 10),
)
def test_launches_and_shares_add_up(events: list[dict[str, Any]], calls: int) -> None:
    kernels = summarise_kernels(events, calls)
    assert sum(kernel.launches for kernel in kernels) * calls == pytest.approx(len(events))
    if any(item["end_us"] > item["start_us"] for item in events):
        assert sum(kernel.share for kernel in kernels) == pytest.approx(1)
