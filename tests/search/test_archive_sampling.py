"""Who becomes a parent, and who is shown beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.programs.likeness import alike
from kernel_smith.records import Candidate, Elite
from kernel_smith.search.islands import Archive, ArchiveConfig

MakeElite = Callable[..., Elite]


def populated(
    make_elite: MakeElite, count: int, config: ArchiveConfig, islands: int = 1
) -> Archive:
    """Programs of different sizes and speeds, the later ones faster."""
    archive = Archive(config)
    for number in range(count):
        archive.add(make_elite(number, 1 + number / 10, lines=4 + 9 * number), number % islands)
    return archive


@settings(deadline=None)
@given(count=st.integers(1, 12), seed=st.integers(0, 99), island=st.integers(0, 2))
def test_parents_are_members_of_the_island(
    make_elite: MakeElite, count: int, seed: int, island: int
) -> None:
    archive = populated(make_elite, count, ArchiveConfig(), islands=3)
    parent = archive.sample_parent(island, Random(seed))
    assert parent in (archive.elites(island) or archive.elites())


def test_the_same_generator_gives_the_same_parent(make_elite: MakeElite) -> None:
    archive = populated(make_elite, 10, ArchiveConfig())
    draws = [[archive.sample_parent(0, Random(step)) for step in range(20)] for _ in "ab"]
    assert draws[0] == draws[1]


def test_an_empty_archive_has_no_parents() -> None:
    with pytest.raises(LookupError, match="empty"):
        Archive(ArchiveConfig()).sample_parent(0, Random(0))


def test_fast_members_are_preferred(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(exploration=0))
    slow, fast = make_elite(1, 1.0), make_elite(2, 2.0, lines=60)
    archive.add(slow, 0)
    archive.add(fast, 0)
    rng = Random(0)
    drawn = Counter(archive.sample_parent(0, rng).score for _ in range(500))
    assert drawn[2.0] > 8 * drawn[1.0] > 0


def test_a_member_with_children_is_drawn_less_often(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(exploration=0))
    fertile, fresh = make_elite(1, 1.0), make_elite(2, 1.0)
    archive.add(fertile, 0)
    archive.add(fresh, 0)
    for _ in range(19):
        archive.note_child(fertile.candidate.content_hash)
    rng = Random(0)
    drawn = Counter(archive.sample_parent(0, rng).candidate.source for _ in range(500))
    assert drawn[fresh.candidate.source] > 8 * drawn[fertile.candidate.source] > 0


def test_exploration_gives_every_cell_the_same_chance(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(exploration=1, features=("complexity",)))
    crowd = [make_elite(1, 5.0), make_elite(2, 5.0)]
    hermit = make_elite(3, 0.1, lines=120)
    for elite in (*crowd, hermit):
        archive.add(elite, 0)
    rng = Random(0)
    drawn = Counter(archive.sample_parent(0, rng).score for _ in range(500))
    assert 200 < drawn[0.1] < 300


@settings(deadline=None)
@given(count=st.integers(1, 14), wanted=st.integers(0, 6), seed=st.integers(0, 99))
def test_exemplars_are_other_members_that_differ(
    make_elite: MakeElite, count: int, wanted: int, seed: int
) -> None:
    archive = populated(make_elite, count, ArchiveConfig(), islands=3)
    rng = Random(seed)
    parent = archive.sample_parent(0, rng)
    shown = archive.exemplars(parent, wanted, rng)
    assert len(shown) <= wanted
    assert len(shown) >= min(wanted, len(archive) - 1)
    programs = [parent, *shown]
    for index, one in enumerate(programs):
        assert one in archive.elites()
        assert not any(alike(one.candidate, other.candidate) for other in programs[:index])


def test_the_top_of_the_island_is_shown_first(make_elite: MakeElite) -> None:
    archive = populated(make_elite, 8, ArchiveConfig(islands=2))
    archive.add(make_elite(50, 99.0), 1)
    ranked = archive.elites(0)
    shown = archive.exemplars(ranked[-1], 4, Random(0))
    assert shown[:2] == ranked[:2]


def test_the_rest_comes_from_other_cells(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(elites_per_cell=4, features=("complexity",)))
    for number in range(4):
        archive.add(make_elite(number, 5.0 - number), 0)
    niche = make_elite(9, 0.5, lines=120)
    archive.add(niche, 0)
    parent = archive.elites(0)[0]
    assert niche in archive.exemplars(parent, 2, Random(0))


def test_the_island_of_a_visitor_can_be_named(make_elite: MakeElite) -> None:
    archive = Archive(ArchiveConfig(islands=2))
    visitor, host, native = make_elite(1, 3.0), make_elite(2, 2.0), make_elite(3, 1.0)
    archive.add(visitor, 0)
    archive.add(native, 0)
    archive.add(host, 1)
    archive.add(visitor, 1)
    assert archive.exemplars(visitor, 1, Random(0)) == (native,)
    assert archive.exemplars(visitor, 1, Random(0), island=1) == (host,)


def test_programs_that_differ_in_numbers_alone_are_alike() -> None:
    def source(block: int, operator: str) -> Candidate:
        return Candidate(backend="triton", source=f"B = {block}\ny = x {operator} B\n")

    assert alike(source(64, "+"), source(128, "+"))
    assert not alike(source(64, "+"), source(64, "*"))


def test_kernel_texts_that_differ_in_numbers_alone_are_alike() -> None:
    def source(body: str) -> Candidate:
        return Candidate(backend="cpp", source=f'S = """\nint f() {{ {body} }}\n"""\n')

    assert alike(source("return 1;"), source("return 0x2;"))
    assert not alike(source("return 1;"), source("return g(1, h);"))
