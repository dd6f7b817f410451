"""Rules on who used the processor when, on books that a test wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.platform.batch import Windows
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing.integrity import (
    check_physics,
    check_processor_use,
    check_seen,
)
from kernel_smith.records import Reason


def windows(
    run_wall: float = 2e-3,
    run_cpu: float = 2e-3,
    service_cpu: float = 1e-3,
    idle_cpu: float = 0.0,
    rounds: int = 20,
) -> list[Windows]:
    """Twenty rounds of 2 ms on one core."""
    spent = Windows(run_wall=run_wall, run_cpu=run_cpu, service_cpu=service_cpu, idle_cpu=idle_cpu)
    return [spent] * rounds


def reason(check: Callable[[], None]) -> Reason | None:
    try:
        check()
    except Rejected as rejected:
        return rejected.reason if rejected.message else None
    return None


@pytest.mark.parametrize(
    ("candidate", "cores", "expected"),
    [
        (windows(), 1, None),
        (windows(run_wall=1e-4, run_cpu=1e-4), 1, None),
        # Work that goes on while it is the reference's turn, or while nobody asked.
        (windows(idle_cpu=1e-3), 1, Reason.BACKGROUND_WORK),
        (windows(idle_cpu=5e-5), 1, None),
        # A fast candidate may not use the reference's time as its own allowance.
        (windows(run_wall=1e-4, run_cpu=1e-4, idle_cpu=5e-4), 1, Reason.BACKGROUND_WORK),
        # Work that was moved to where results are copied.
        (windows(service_cpu=5e-3), 1, Reason.DEFERRED_WORK),
        (windows(service_cpu=1.1e-3), 1, None),
        # What the system does may fall on anybody: in a fifth of the rounds, which are trimmed from
        # the ratios as well, and in one of few.
        ([*windows(rounds=16), *windows(service_cpu=5e-2, rounds=4)], 1, None),
        ([*windows(rounds=15), *windows(service_cpu=5e-2, rounds=5)], 1, Reason.DEFERRED_WORK),
        ([*windows(rounds=16), *windows(idle_cpu=5e-3, rounds=4)], 1, None),
        ([*windows(rounds=10), *windows(idle_cpu=5e-3, rounds=10)], 1, Reason.BACKGROUND_WORK),
        ([*windows(rounds=2), *windows(idle_cpu=5e-2, rounds=1)], 1, None),
        # A busy machine stretches wall time for the innocent.
        (windows(run_wall=1.0), 1, None),
        # Two cores' worth of work where one was given.
        (windows(run_cpu=4e-3), 1, Reason.EXTRA_CORES),
        (windows(run_cpu=4e-3), 2, None),
        (windows(run_cpu=6e-3), 2, Reason.EXTRA_CORES),
        (windows(run_cpu=2.2e-3), 1, None),
    ],
)
def test_processor_use(candidate: list[Windows], cores: int, expected: Reason | None) -> None:
    assert reason(lambda: check_processor_use(candidate, windows(), cores)) is expected


def test_a_reference_that_idles_busily_excuses_a_candidate_that_does_too() -> None:
    """Both run the same loop; what it uses by itself is nobody's cheat."""
    idle = windows(idle_cpu=1e-3)
    assert reason(lambda: check_processor_use(idle, idle, 1)) is None


def test_a_single_tick_of_the_books_is_forgiven() -> None:
    one_round = windows(run_wall=1e-5, run_cpu=1e-5, idle_cpu=1e-3, rounds=1)
    calm = windows(run_wall=1e-5, run_cpu=1e-5, rounds=1)
    assert reason(lambda: check_processor_use(one_round, calm, 1)) is None


@pytest.mark.parametrize(
    ("seconds", "size", "expected"),
    [
        (1e-6, 1 << 20, Reason.PHYSICS_FLOOR),
        (1e-3, 1 << 20, None),
        (1e-9, 0, None),
        (1.0, 1 << 40, Reason.PHYSICS_FLOOR),
    ],
)
def test_nobody_stores_faster_than_the_machine(
    seconds: float, size: int, expected: Reason | None
) -> None:
    assert reason(lambda: check_physics(seconds, size, 100e9)) is expected


@given(st.floats(1e-9, 1e-2), st.floats(0, 1e-2), st.integers(0, 1 << 30))
def test_a_time_in_doubt_accuses_nobody(seconds: float, doubt: float, size: int) -> None:
    """A busy machine stretches what is subtracted, and honest calls seem to take no time."""
    found = reason(lambda: check_physics(seconds, size, 100e9, doubt))
    floor = size / 100e9
    assert (found is Reason.PHYSICS_FLOOR) == (seconds + doubt < floor)
    assert (found is None) == (seconds >= floor)


def test_nobody_is_accepted_whose_batches_could_not_be_looked_into() -> None:
    assert reason(lambda: check_seen("small", True)) is Reason.TOO_NOISY
    assert reason(lambda: check_seen("small", False)) is None
