"""Waves of 64 threads on warps of 32: the route nvidia's emulation, run on the CPU.

The header is compiled as it is, against a CUDA that has one OS thread per GPU thread.
"""

import ctypes
import operator
import struct
import subprocess
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.inline.dialects import COMPAT
from kernel_smith.inline.toolchain import find_toolchain

SOURCES = Path(__file__).parent / "sources"
OPERATIONS = ["index", "xor", "up", "down", "ballot", "any", "all", "sync", "add", "max", "size"]
WAVE = 64
ALL = 2**64 - 1
LOWER = 2**32 - 1


class Ran(NamedTuple):
    failure: str
    values: list[float]


Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    library = tmp_path_factory.mktemp("wave64") / "wave64.so"
    include = [f"-I{SOURCES / 'host_warps'}", f"-I{COMPAT / 'wave'}"]
    words = [str(find_toolchain("cpp").compiler), "-std=c++17", "-O1", "-shared", "-fPIC"]
    source = str(SOURCES / "wave64_on_host.cpp")
    subprocess.run([*words, "-pthread", *include, source, "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).run
    function.restype = ctypes.c_char_p

    def run_one(
        operation: str,
        values: list[float],
        mask: int = ALL,
        argument: int = 0,
        width: int = WAVE,
        rows: int = 1,
        caller: Callable[[int], bool] = lambda thread: True,
    ) -> Ran:
        count = len(values)
        given = (ctypes.c_double * count)(*values)
        result = (ctypes.c_double * count)()
        calls = (ctypes.c_bool * count)(*map(caller, range(count)))
        failure = function(
            *(OPERATIONS.index(operation), count // rows, rows, ctypes.c_uint64(mask)),
            *(argument, width, calls, given, result),
        )
        return Ran(failure.decode(), list(result))

    return run_one


def source_lane(operation: str, lane: int, argument: int, width: int) -> int:
    """Where a shuffle on a wave of 64 reads."""
    first = lane - lane % width
    source = {
        "index": first + argument % width,
        "xor": lane ^ argument,
        "up": lane - argument,
        "down": lane + argument,
    }[operation]
    if operation == "xor":
        return source if source < first + width else lane
    return source if first <= source < first + width else lane


def as_lanes(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


@settings(max_examples=30)
@given(
    st.sampled_from(["index", "xor", "up", "down"]),
    st.integers(0, 63),
    st.sampled_from([2, 4, 8, 16, 32, 64]),
    st.integers(1, 3),
    st.sampled_from([1, 2]),
)
def test_shuffles_read_the_lane_that_waves_of_64_have(
    run: Run, operation: str, argument: int, width: int, waves: int, rows: int
) -> None:
    values = [1000.0 + thread for thread in range(WAVE * waves)]
    ran = run(operation, values, argument=argument, width=width, rows=rows)
    expected = [
        values[WAVE * (thread // WAVE) + source_lane(operation, thread % WAVE, argument, width)]
        for thread in range(len(values))
    ]
    assert ran == Ran("", expected)


@settings(max_examples=15)
@given(st.lists(st.integers(-1, 1), min_size=1, max_size=150))
def test_votes_and_sums_count_the_lanes_that_the_block_has(run: Run, signs: list[int]) -> None:
    values = [float(sign) for sign in signs]
    waves = [values[first : first + WAVE] for first in range(0, len(values), WAVE)]
    positive = [sum((value > 0) << lane for lane, value in enumerate(wave)) for wave in waves]
    expected = {
        "any": [float(any(value > 0 for value in wave)) for wave in waves],
        "all": [float(all(value > 0 for value in wave)) for wave in waves],
        "add": [sum(wave) for wave in waves],
        "max": [max(wave) for wave in waves],
    }
    ballot = run("ballot", values)
    assert ballot.failure == ""
    assert [as_lanes(value) for value in ballot.values] == [
        positive[thread // WAVE] for thread in range(len(values))
    ]
    for operation, per_wave in expected.items():
        ran = run(operation, values)
        assert ran == Ran("", [per_wave[thread // WAVE] for thread in range(len(values))])


def test_a_wave_has_64_threads(run: Run) -> None:
    assert run("size", [0.0]).values == [64.0]


@pytest.mark.parametrize("operation", OPERATIONS[:10])
@pytest.mark.parametrize("mask", [LOWER, 0x0000FFFF, LOWER << 32])
def test_a_mask_of_32_bits_that_a_whole_wave_passes_is_caught(
    run: Run, operation: str, mask: int
) -> None:
    failure = run(operation, [1.0] * WAVE, mask=mask).failure
    assert "a mask that does not name it" in failure


def test_half_a_wave_alone_may_name_itself(run: Run) -> None:
    values = [float(thread) for thread in range(WAVE)]
    lower = {"mask": LOWER, "caller": lambda thread: thread < 32}
    assert run("add", values, **lower) == Ran("", [sum(range(32))] * 32 + [0.0] * 32)
    assert run("xor", values, argument=16, **lower).values[0] == 16
    # What lanes read from beyond the half does not matter, and the others get the right value.
    assert run("down", values, argument=16, **lower).values[:16] == values[16:32]
    assert run("up", values, argument=40, **lower).failure == ""
    upper = {"mask": LOWER << 32, "caller": lambda thread: thread >= 32}
    assert run("max", values, **upper) == Ran("", [0.0] * 32 + [63.0] * 32)
    assert as_lanes(run("ballot", values, **upper).values[40]) == LOWER << 32


@pytest.mark.parametrize(("operation", "argument"), [("xor", 32), ("index", 40)])
def test_reading_the_half_that_is_not_named_is_caught(
    run: Run, operation: str, argument: int
) -> None:
    values = [float(thread) for thread in range(WAVE)]
    ran = run(operation, values, LOWER, argument, caller=lambda thread: thread < 32)
    assert "not named or not there" in ran.failure
    assert "not named or not there" in run(operation, values[:32], argument=argument).failure


def test_parts_of_both_halves_are_refused(run: Run) -> None:
    lanes = [*range(8), *range(32, 40)]
    mask = reduce(operator.or_, (1 << lane for lane in lanes))
    ran = run("add", [1.0] * WAVE, mask, caller=lambda thread: thread in lanes)
    assert "parts of both halves" in ran.failure


def test_fifteen_waves_work_and_sixteen_are_caught(run: Run) -> None:
    values = [float(thread) for thread in range(1024)]
    ran = run("xor", values[:960], argument=63)
    assert ran == Ran("", [values[thread ^ 63] for thread in range(960)])
    for operation in ("xor", "ballot", "sync"):
        assert "more than 15 waves" in run(operation, values).failure
