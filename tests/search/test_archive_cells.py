"""A cell keeps what is certain, and lets chance displace nobody."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.records import Elite, Interval
from kernel_smith.search.islands.cells import Cell, Member

Bounds = tuple[float, float]

bounds = st.tuples(st.floats(0.1, 4), st.floats(0, 2)).map(lambda pair: (pair[0], sum(pair)))


def member(number: int, low: float, high: float) -> Member:
    speedup = Interval(value=(low + high) / 2, low=low, high=high)
    # A cell never looks at the elite itself.
    return Member(Elite.model_construct(), str(number), str(number), number, (), speedup)


def filled(capacity: int, intervals: list[Bounds]) -> Cell:
    cell = Cell(capacity)
    for number, (low, high) in enumerate(intervals):
        cell.admit(member(number, low, high))
    return cell


def keys(cell: Cell) -> list[str]:
    return [found.key for found in cell.members]


def test_members_are_ranked_by_their_certain_speedup() -> None:
    assert keys(filled(3, [(1.0, 9.0), (2.0, 2.1), (1.5, 1.6)])) == ["1", "2", "0"]


def test_of_equals_the_older_one_ranks_first() -> None:
    assert keys(filled(2, [(1.0, 1.5), (1.0, 1.1)])) == ["0", "1"]


def test_a_full_cell_gives_its_last_place_to_a_certainly_better_one() -> None:
    cell = filled(2, [(2.0, 2.1), (1.0, 1.1)])
    admission = cell.admit(member(9, 1.2, 1.3))
    assert admission.kept
    assert admission.displaced is not None
    assert admission.displaced.key == "1"
    assert keys(cell) == ["0", "9"]


def test_a_wide_interval_does_not_displace_a_certain_member() -> None:
    cell = filled(1, [(2.0, 2.02)])
    assert not cell.admit(member(1, 1.0, 9.0)).kept
    assert cell.admit(member(2, 2.01, 9.0)).displaced is None
    assert keys(cell) == ["2", "0"]


def test_who_is_only_beaten_by_chance_stays_though_ranked_last() -> None:
    cell = filled(2, [(1.0, 3.0), (1.5, 1.6)])
    admission = cell.admit(member(2, 1.8, 1.9))
    assert admission.displaced is not None
    assert admission.displaced.key == "1"
    assert keys(cell) == ["2", "0"]


def test_a_contender_gives_way_to_a_better_contender() -> None:
    cell = filled(1, [(2.0, 2.5), (2.1, 2.6), (2.2, 2.7)])
    assert keys(cell) == ["2", "0"]


def test_a_contender_is_established_once_it_is_certain() -> None:
    cell = filled(1, [(2.0, 2.5), (2.1, 2.6)])
    contender = cell.members[0]
    leaving = cell.replace(contender, member(1, 2.55, 2.6))
    assert leaving is not None
    assert leaving.key == "0"
    assert keys(cell) == ["1"]


def test_a_member_that_is_measured_again_and_confirmed_stays() -> None:
    cell = filled(1, [(2.0, 2.5), (2.1, 2.6)])
    established = cell.members[1]
    assert cell.replace(established, member(0, 1.9, 2.4)) is None
    assert keys(cell) == ["1", "0"]


def test_a_contender_takes_the_place_of_a_removed_member() -> None:
    cell = filled(1, [(2.0, 2.5), (2.1, 2.6)])
    cell.remove(cell.members[1])
    assert not cell.admit(member(2, 2.0, 2.5)).kept
    assert keys(cell) == ["1"]


@settings(deadline=None)
@given(capacity=st.integers(1, 4), intervals=st.lists(bounds, max_size=30))
def test_a_cell_is_bounded_and_sorted(capacity: int, intervals: list[Bounds]) -> None:
    found = filled(capacity, intervals).members
    assert len(found) <= capacity + 1
    assert [one.rank for one in found] == sorted(one.rank for one in found)


@settings(deadline=None)
@given(capacity=st.integers(1, 4), intervals=st.lists(bounds, min_size=1, max_size=30))
def test_the_highest_certain_speedup_is_never_lost(capacity: int, intervals: list[Bounds]) -> None:
    best = filled(capacity, intervals).best
    assert best is not None
    assert best.score == max(low for low, _ in intervals)


@settings(deadline=None)
@given(capacity=st.integers(1, 4), intervals=st.lists(bounds, max_size=30), newcomer=bounds)
def test_who_is_certainly_better_than_a_member_gets_in(
    capacity: int, intervals: list[Bounds], newcomer: Bounds
) -> None:
    cell = filled(capacity, intervals)
    arriving = member(99, *newcomer)
    beats_one = any(arriving.certainly_beats(known) for known in cell.members)
    assert cell.admit(arriving).kept or not beats_one


@settings(deadline=None)
@given(capacity=st.integers(1, 4), intervals=st.lists(bounds, max_size=30), newcomer=bounds)
def test_only_one_member_at_a_time_leaves_and_only_for_a_higher_certain_speedup(
    capacity: int, intervals: list[Bounds], newcomer: Bounds
) -> None:
    cell = filled(capacity, intervals)
    before = set(keys(cell))
    arriving = member(99, *newcomer)
    admission = cell.admit(arriving)
    gone = before - set(keys(cell))
    assert gone == ({admission.displaced.key} if admission.displaced else set())
    assert admission.displaced is None or arriving.rank < admission.displaced.rank
