"""The made-up landscape is what it says: an optimum that is known, traps, and plateaus."""

from __future__ import annotations

import random

import pytest

from kernel_smith.records import Reason
from kernel_smith.testing.landscape import CHOICES, LEVELS, Landscape, choices_of, program

PLAIN = (0,) * CHOICES


def drawn(count: int, seed: int) -> list[tuple[int, ...]]:
    rng = random.Random(seed)
    return [tuple(rng.randrange(LEVELS) for _ in range(CHOICES)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_faster_than_the_optimum_and_climbing_every_pair_reaches_it(seed: int) -> None:
    landscape = Landscape(seed)
    assert all(landscape.speed(each) <= landscape.optimum for each in drawn(2000, seed))
    at = PLAIN
    for one in range(CHOICES):
        for other in range(CHOICES):
            near = [
                tuple(
                    first if place == one else second if place == other else level
                    for place, level in enumerate(at)
                )
                for first in range(LEVELS)
                for second in range(LEVELS)
            ]
            at = max(near, key=landscape.speed)
    assert landscape.speed(at) == pytest.approx(landscape.optimum)


@pytest.mark.parametrize("seed", range(5))
def test_single_steps_end_in_a_trap(seed: int) -> None:
    """The best that changes of one choice at a time lead to is not the optimum."""
    landscape, at = Landscape(seed), PLAIN
    for _ in range(3):
        for place in range(CHOICES):
            near = [(*at[:place], level, *at[place + 1 :]) for level in range(LEVELS)]
            at = max(near, key=landscape.speed)
    assert landscape.speed(at) < 0.7 * landscape.optimum


def test_some_programs_do_not_compile_and_it_is_always_the_same_ones() -> None:
    landscape = Landscape(1)
    verdicts = [landscape(program(each)) for each in drawn(400, 1)]
    assert verdicts == [landscape(program(each)) for each in drawn(400, 1)]
    assert 10 < verdicts.count(Reason.COMPILER_REJECTED) < 80
    assert landscape(program(PLAIN)) == 1.0


def test_choices_are_read_as_they_were_written() -> None:
    assert all(choices_of(program(each)) == each for each in drawn(20, 2))
