"""Library time of tasks that forbid it: accused is who needs it whenever it is measured."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.timing import library_time as library
from kernel_smith.evaluation.judge.timing.library_time import check_library_seconds


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_UNTIL_NEXT_LOOK", 0.0)


def check(others: Iterable[float], own: float) -> None:
    left = iter(others)
    check_library_seconds(lambda: next(left), own)


def test_little_is_measured_once() -> None:
    check([4e-6], 20e-6)  # too short for the clock
    check([90e-6], 1e-3)


def test_what_another_program_did_for_a_moment_is_nobodys_fault() -> None:
    check([80e-6, 60e-6, 2e-6], 100e-6)


def test_who_is_busy_each_time_is_told_the_least_of_the_times() -> None:
    with pytest.raises(Rejected, match=r"still takes 70\.0 us of the device's time, of 100\.0 us"):
        check([90e-6, 80e-6, 70e-6, 75e-6, 95e-6], 100e-6)
