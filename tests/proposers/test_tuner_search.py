"""The search over values: nothing twice, nothing left out, and better than chance."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.proposers.tuner.search import Domains, Search
from kernel_smith.proposers.tuner.space import Values

SMALL: Domains = {"BLOCK": (64, 128, 256), "warps": (4, 8), "order": ("static", "dynamic")}
LARGE: Domains = {
    "BM": (16, 32, 64, 128, 256),
    "BN": (16, 32, 64, 128, 256),
    "BK": (16, 32, 64, 128),
    "warps": (1, 2, 4, 8, 16),
    "stages": (1, 2, 3, 4, 5),
}


def anything(values: Values) -> bool:
    return True


def exhaust(search: Search) -> list[Values]:
    found = []
    while (values := search.suggest(len(found), anything)) is not None:
        found.append(values)
    return found


def frozen(values: Values) -> frozenset[tuple[str, int | str]]:
    return frozenset(values.items())


def test_every_point_is_suggested_exactly_once() -> None:
    search = Search(SMALL)
    found = exhaust(search)
    assert len(found) == 12
    assert len({frozen(values) for values in found}) == 12


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.none() | st.floats(0, 9)), max_size=12)
)
def test_what_is_known_is_not_suggested(known: list[tuple[int, bool, float | None]]) -> None:
    search = Search(SMALL)
    seen = set()
    for block, wide, score in known:
        values: Values = {"BLOCK": 64 << block, "warps": 8 if wide else 4, "order": "static"}
        search.know(values, score)
        seen.add(frozen(values))
    assert seen.isdisjoint(frozen(values) for values in exhaust(search))


def test_what_is_not_accepted_is_not_suggested() -> None:
    search = Search(SMALL)
    found = []
    while (values := search.suggest(len(found), lambda v: v["BLOCK"] != 128)) is not None:
        found.append(values)
    assert len(found) == 8
    assert all(values["BLOCK"] != 128 for values in found)


def test_the_surroundings_of_the_first_values_come_first() -> None:
    search = Search(LARGE)
    first: Values = {"BM": 64, "BN": 64, "BK": 32, "warps": 4, "stages": 3}
    search.know(first, 1.0)
    search.enqueue_neighbours(first, seed=0)
    suggested = search.suggest(1, anything)
    assert suggested is not None
    assert sum(suggested[name] != first[name] for name in first) == 1


START: Values = {"BLOCK": 128, "warps": 4, "order": "static"}


def test_a_number_that_means_something_is_left_alone() -> None:
    """With other blocks the result is another one, smaller or larger."""
    search = Search(SMALL)
    search.know(START, 1.0)
    for block in (64, 256):
        search.know(START | {"BLOCK": block}, 0.0, wrong=True)
    found = exhaust(search)
    assert {values["BLOCK"] for values in found} == {128}
    assert len(found) == 3


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([({"BLOCK": 64}, 0.0, True)], "larger blocks may be right"),
        ([({"BLOCK": 64}, 0.0, True), ({"BLOCK": 256}, 0.0, False)], "it only did not fit"),
        ([({"BLOCK": 64}, 0.0, True), ({"BLOCK": 256}, 0.5, False)], "it is right"),
        (
            [({"BLOCK": 64}, 0.0, True), ({"BLOCK": 256, "warps": 8}, 0.0, True)],
            "it may have been the warps",
        ),
    ],
)
def test_a_number_is_not_blamed_in_doubt(
    others: list[tuple[Values, float, bool]], why: str
) -> None:
    search = Search(SMALL)
    search.know(START, 1.0)
    for change, score, wrong in others:
        search.know(START | change, score, wrong=wrong)
    assert {values["BLOCK"] for values in exhaust(search)} == {64, 128, 256}, why


def test_a_right_result_with_another_value_absolves_a_number() -> None:
    search = Search({**SMALL, "BLOCK": (32, 64, 128, 256)})
    search.know(START, 1.0)
    for block in (64, 256):
        search.know(START | {"BLOCK": block}, 0.0, wrong=True)
    search.know({"BLOCK": 32, "warps": 8, "order": "static"}, 0.5)
    assert {values["BLOCK"] for values in exhaust(search)} == {32, 64, 128, 256}


def test_values_from_elsewhere_widen_the_domains_and_keep_what_is_known() -> None:
    search = Search(SMALL)
    pending = search.suggest(0, anything)
    assert pending is not None
    search.know({"BLOCK": 512, "warps": 4, "order": "guided"}, 2.0)
    assert search.domains["BLOCK"] == (64, 128, 256, 512)
    assert search.domains["order"] == ("static", "dynamic", "guided")
    search.know(pending, 1.0)
    rest = exhaust(search)
    assert len(rest) == 4 * 2 * 3 - 2


def test_results_without_a_gain_are_counted() -> None:
    search = Search({"BLOCK": (1, 2, 4, 8)})
    for value, score, expected in ((1, 1.0, 0), (2, 0.9, 1), (4, None, 2), (8, 2.0, 0)):
        search.know({"BLOCK": value}, score)
        assert search.without_gain == expected


def test_luck_is_no_gain_however_often_it_comes() -> None:
    """Each lower end is above the last, and none is above what the first may have been."""
    search = Search({"BLOCK": tuple(1 << n for n in range(8))})
    search.know({"BLOCK": 1}, 1.0, most=1.2)
    for number in range(1, 6):
        search.know({"BLOCK": 1 << number}, 1.0 + 0.03 * number, most=1.4)
    assert search.without_gain == 5
    search.know({"BLOCK": 64}, 1.21, most=1.5)
    assert search.without_gain == 0
    search.know({"BLOCK": 128}, 1.4, most=1.6)
    assert search.without_gain == 1


def best_of(seed: int, evaluations: int) -> float:
    """The best score found on a smooth hill whose top is away from the start."""
    top = {"BM": 128, "BN": 32, "BK": 64, "warps": 8, "stages": 4}

    def score(values: Values) -> float:
        steps = sum((math.log2(int(values[n])) - math.log2(top[n])) ** 2 for n in top)
        return math.exp(-0.1 * steps)

    search = Search(LARGE)
    values: Values = {"BM": 16, "BN": 256, "BK": 16, "warps": 1, "stages": 1}
    search.know(values, score(values))
    best = 0.0
    for number in range(evaluations):
        suggested = search.suggest(1000 * seed + number, anything)
        assert suggested is not None
        search.know(suggested, score(suggested))
        best = max(best, score(suggested))
    return best


def test_forty_of_2500_points_find_the_hill() -> None:
    assert sorted(best_of(seed, 40) for seed in range(5))[2] > 0.9
