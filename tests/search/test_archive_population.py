"""The archive as a whole: what adding, migrating and measuring again do to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.records import Budget, Elite, Evaluation, Reason, RunConfig
from kernel_smith.search.islands import Archive, ArchiveConfig, Migration, Outcome

MakeElite = Callable[..., Elite]
MakeEvaluation = Callable[..., Evaluation]

_LINES = (4, 30, 60, 120)  # each of another complexity

Step = tuple[str, int, int, float, float]
"""What happens, to which program, on which island, and the interval that was measured."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "add", "update", "fail", "child", "migrate"]),
        st.integers(0, 19),
        st.integers(0, 2),
        st.floats(0.2, 4),
        st.floats(0, 1),
    ),
    max_size=40,
)


@pytest.fixture(scope="module")
def play(make_elite: MakeElite, make_evaluation: MakeEvaluation) -> Callable[..., None]:
    """Does one step to an archive."""

    def one(archive: Archive, step: Step) -> None:
        what, number, island, low, width = step
        elite = make_elite(number, low, low + width, lines=_LINES[number % 4])
        key = elite.candidate.content_hash
        if what == "add":
            archive.add(elite, island)
        elif what == "update":
            archive.update(key, elite.evaluation)
        elif what == "fail":
            archive.update(key, make_evaluation(reason=Reason.WRONG_VALUES))
        elif what == "child":
            archive.note_child(key)
        else:
            migrate(archive)

    return one


def migrate(archive: Archive) -> None:
    """Carry out the archive's own plan."""
    moves = [(archive.get(move.candidate), move.target) for move in archive.migrants()]
    for elite, target in moves:
        assert elite is not None
        archive.add(elite, target)


def picture(archive: Archive) -> object:
    """All that can be seen of an archive, including what it would draw."""
    islands = range(archive.config.islands)
    rng = random.Random(0)
    return (
        [archive.cells(island) for island in islands],
        archive.best,
        archive.migrants(),
        [archive.sample_parent(island, rng) for island in islands] if len(archive) else [],
    )


def hashes(elites: Sequence[Elite]) -> list[str]:
    return [elite.candidate.content_hash for elite in elites]


@settings(deadline=None)
@given(script=steps)
def test_the_same_steps_give_the_same_archive(
    play: Callable[..., None], script: list[Step]
) -> None:
    archives = [Archive(ArchiveConfig()) for _ in range(2)]
    for archive in archives:
        for step in script:
            play(archive, step)
    assert picture(archives[0]) == picture(archives[1])


@settings(deadline=None)
@given(script=steps)
def test_looking_does_not_change_it(play: Callable[..., None], script: list[Step]) -> None:
    watched, alone = Archive(ArchiveConfig()), Archive(ArchiveConfig())
    for step in script:
        play(watched, step)
        play(alone, step)
        picture(watched)
    assert picture(watched) == picture(alone)


@settings(deadline=None)
@given(script=steps)
def test_the_best_gets_worse_only_by_measuring_again(
    play: Callable[..., None], script: list[Step]
) -> None:
    archive = Archive(ArchiveConfig())
    for step in script:
        before = archive.best
        play(archive, step)
        after = archive.best
        if step[0] not in ("update", "fail") and before is not None:
            assert after is not None
            assert after.score >= before.score


@settings(deadline=None)
@given(script=steps, elites_per_cell=st.integers(1, 3))
def test_its_books_agree(
    play: Callable[..., None], script: list[Step], elites_per_cell: int
) -> None:
    archive = Archive(ArchiveConfig(elites_per_cell=elites_per_cell, features=("complexity",)))
    for step in script:
        play(archive, step)
    everyone = set()
    for island in range(3):
        cells = archive.cells(island)
        held = [key for elites in cells.values() for key in hashes(elites)]
        everyone.update(held)
        assert len(held) == len(set(held))
        assert set(held) == set(hashes(archive.elites(island)))
        for key, elites in cells.items():
            assert 1 <= len(elites) <= elites_per_cell + 1
            assert all(archive.cell_of(elite) == key for elite in elites)
    assert len(archive) == len(everyone)
    scores = [elite.score for elite in archive.elites()]
    assert scores == sorted(scores, reverse=True)
    assert (archive.best.score if archive.best else None) == (scores[0] if scores else None)


@settings(deadline=None)
@given(script=steps)
def test_the_outcome_says_what_happened(
    make_elite: MakeElite, play: Callable[..., None], script: list[Step]
) -> None:
    archive = Archive(ArchiveConfig(features=("complexity",)))
    for step in script:
        play(archive, step)
    elite = make_elite(99, 2.0, 2.5, lines=30)
    best, cells = archive.best, archive.cells(1)
    before = archive.elites(1)
    added = archive.add(elite, 1)
    assert added.kept == (elite in archive.elites(1))
    assert set(hashes(before)) - set(hashes(archive.elites(1))) == set(
        hashes([added.displaced] if added.displaced else [])
    )
    assert (added.outcome is Outcome.RUN_BEST) == (best is None or elite.score > best.score)
    if added.outcome is Outcome.ISLAND_BEST:
        assert elite.score > max((other.score for other in before), default=0)
    if added.outcome is Outcome.NEW_CELL:
        assert added.cell not in cells


def test_outcomes_are_ordered() -> None:
    assert [outcome.label for outcome in sorted(Outcome)] == [
        "rejected",
        "duplicate",
        "kept-in-cell",
        "new-cell",
        "cell-best",
        "island-best",
        "run-best",
    ]


def test_each_outcome_has_its_occasion(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(islands=2, features=("complexity",)))

    def outcome(number: int, low: float, island: int = 0, lines: int = 4) -> Outcome:
        return archive.add(make_elite(number, low, lines=lines), island).outcome

    assert outcome(0, 2.0) is Outcome.RUN_BEST
    assert outcome(0, 2.0) is Outcome.DUPLICATE
    assert outcome(1, 1.0, lines=60) is Outcome.NEW_CELL
    assert outcome(2, 1.5, lines=60) is Outcome.CELL_BEST
    assert outcome(3, 1.9) is Outcome.KEPT_IN_CELL
    assert outcome(4, 1.8) is Outcome.REJECTED
    assert outcome(5, 1.0, island=1) is Outcome.ISLAND_BEST
    assert outcome(6, 3.0, island=1) is Outcome.RUN_BEST


def test_the_same_program_in_other_words_is_a_duplicate(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig())
    archive.add(make_elite(source="x = 1\n", low=1.0), 0)
    again = make_elite(source="x = 1  # one\n", low=5.0)
    assert archive.add(again, 0).outcome is Outcome.DUPLICATE
    assert archive.add(again, 1).outcome is Outcome.RUN_BEST


def test_a_program_has_one_evaluation_wherever_it_lives(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig())
    first = make_elite(1, 2.0)
    archive.add(first, 0)
    archive.add(make_elite(1, 9.0), 1)
    assert archive.elites(1) == (first,)
    assert archive.best == first


@pytest.mark.parametrize("reason", [Reason.WRONG_VALUES, Reason.TOO_NOISY])
def test_what_failed_has_no_place(make_elite: MakeElite, reason: Reason) -> None:
    archive = Archive(ArchiveConfig())
    added = archive.add(make_elite(reason=reason), 0)
    assert added.outcome is Outcome.REJECTED
    assert added.cell is None
    assert archive.best is None
    assert len(archive) == 0


def test_what_was_only_interpreted_has_no_place(make_elite: MakeElite) -> None:
    interpreted = make_elite(timing=None, interpreted=True)
    assert Archive(ArchiveConfig()).add(interpreted, 0).outcome is Outcome.REJECTED


def test_where_nothing_is_timed_all_that_is_correct_counts_the_same(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(islands=1, untimed=True))
    first, second = (make_elite(name, timing=None, interpreted=True) for name in (1, 2))
    archive.add(first, 0)
    assert archive.add(second, 0).outcome > Outcome.REJECTED
    assert len(archive) == 2 and archive.best == first


def test_measuring_again_changes_the_rank(
    make_elite: MakeElite, make_evaluation: MakeEvaluation
) -> None:
    archive = Archive(ArchiveConfig())
    lucky, solid = make_elite(1, 3.0, 3.1), make_elite(2, 2.5, 2.6)
    archive.add(lucky, 0)
    archive.add(solid, 0)
    assert archive.update(lucky.candidate.content_hash, make_evaluation(2.0, 2.1))
    assert archive.best == solid
    found = archive.get(lucky.candidate.content_hash)
    assert found is not None
    assert found.score == 2.0


def test_measuring_again_reaches_every_island(
    make_elite: MakeElite, make_evaluation: MakeEvaluation
) -> None:
    archive = Archive(ArchiveConfig(features=("score",)))
    elite = make_elite(1, 3.0)
    for island in range(3):
        archive.add(elite, island)
    archive.update(elite.candidate.content_hash, make_evaluation(1.1))
    for island in range(3):
        assert list(archive.cells(island)) == [(">=1",)]


def test_what_fails_when_measured_again_is_removed(
    make_elite: MakeElite, make_evaluation: MakeEvaluation
) -> None:
    archive = Archive(ArchiveConfig())
    elite = make_elite(1, 3.0)
    archive.add(elite, 0)
    failed = make_evaluation(reason=Reason.NONDETERMINISTIC)
    assert not archive.update(elite.candidate.content_hash, failed)
    assert archive.best is None
    assert len(archive) == 0


def test_a_noisy_measurement_changes_nothing(
    make_elite: MakeElite, make_evaluation: MakeEvaluation
) -> None:
    archive = Archive(ArchiveConfig())
    elite = make_elite(1, 3.0)
    archive.add(elite, 0)
    noisy = make_evaluation(reason=Reason.TOO_NOISY)
    assert archive.update(elite.candidate.content_hash, noisy)
    assert archive.best == elite


def test_the_best_of_each_island_visits_the_next(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig())
    elites = [make_elite(number, 1.0 + number) for number in range(3)]
    for island, elite in enumerate(elites):
        archive.add(elite, island)
    names = hashes(elites)
    assert archive.migrants() == (
        Migration(names[0], 0, 1),
        Migration(names[1], 1, 2),
        Migration(names[2], 2, 0),
    )
    added = archive.add(elites[2], 0)
    assert added.outcome is Outcome.ISLAND_BEST
    assert archive.elites(0) == (elites[2], elites[0])
    assert archive.elites(2) == (elites[2],)
    assert Migration(names[2], 2, 0) not in archive.migrants()


def test_nobody_migrates_where_there_is_nobody_or_nowhere_to_go(make_elite: MakeElite) -> None:
    assert Archive(ArchiveConfig()).migrants() == ()
    single = Archive(ArchiveConfig(islands=1))
    single.add(make_elite(), 0)
    assert single.migrants() == ()


@settings(deadline=None)
@given(script=steps)
def test_migration_brings_no_new_programs_and_keeps_the_best_of_every_island(
    play: Callable[..., None], script: list[Step]
) -> None:
    archive = Archive(ArchiveConfig())
    for step in script:
        play(archive, step)
    everyone = set(hashes(archive.elites()))
    bests = [archive.elites(island)[:1] for island in range(3)]
    migrate(archive)
    assert set(hashes(archive.elites())) <= everyone
    for island, best in enumerate(bests):
        assert all(archive.elites(island)[0].score >= elite.score for elite in best)
        assert all(archive.elites((island + 1) % 3)[0].score >= elite.score for elite in best)


@pytest.mark.parametrize(
    "bad",
    [
        {"islands": 0},
        {"elites_per_cell": 0},
        {"exploration": 1.5},
        {"greed": -1.0},
        {"features": ("taste",)},
    ],
)
def test_a_bad_configuration_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        ArchiveConfig(**bad)  # type: ignore[arg-type]


def test_the_configuration_comes_from_the_runs() -> None:
    run = RunConfig(
        backend="cpp",
        proposers={"mutator": 1.0},
        budget=Budget(evaluations=10),
        islands=5,
        elites_per_cell=4,
        features=("complexity", "score"),
    )
    config = ArchiveConfig.of(run)
    assert (config.islands, config.elites_per_cell) == (5, 4)
    assert config.features == ("complexity", "score")
