"""What a run tells about the changes that it has seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.search.lessons import LessonBook


def lessons(*noted: tuple[str, float]) -> tuple[str, ...]:
    found = LessonBook()
    for step, (summary, gain) in enumerate(noted):
        found.note(step, summary, gain)
    return found.lines()


def test_what_paid_comes_first_and_the_best_of_it_at_the_top() -> None:
    told = lessons(("unroll-loop: loop over k", 1.1), ("simd-loop: loop over i", 1.5))
    assert told == (
        "simd-loop: made a program at least 1.50 times as fast",
        "unroll-loop: made a program at least 1.10 times as fast",
    )


def test_named_changes_of_one_kind_are_one_lesson() -> None:
    told = lessons(
        *((f"unroll-loop: loop over {name}", 1.0 + n / 10) for n, name in enumerate("ijk"))
    )
    assert told == ("unroll-loop: made a program at least 1.15 times as fast, in 2 of 3 tries",)


def test_the_luckiest_of_many_tries_does_not_speak_for_its_kind() -> None:
    often = [("simd-loop: i", 1.2)] * 3
    lucky = [("tile-loops: i and j", gain) for gain in (1.5, *[1.0] * 9)]
    assert lessons(*lucky, *often) == (
        "simd-loop: made a program at least 1.20 times as fast, in 3 of 3 tries",
        "tile-loops: made a program at least 1.50 times as fast, in 1 of 10 tries",
    )


def test_a_step_that_is_measured_again_has_its_last_word() -> None:
    found = LessonBook()
    found.note(7, "simd-loop: i", 1.5)
    found.note(7, "simd-loop: i", 1.1)
    assert found.lines() == ("simd-loop: made a program at least 1.10 times as fast",)
    found.note(7, "simd-loop: i", 1.0)
    assert found.lines() == ()
    for step in (8, 9):
        found.note(step, "simd-loop: i", 0.0)
    found.note(9, "simd-loop: i", 1.0)
    assert found.lines() == (
        "simd-loop: 3 tries without a certain gain, of which 1 broke the program",
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.sampled_from((0.0, 1.0, 1.1, 2.0))),
        max_size=30,
    )
)
def test_only_the_last_word_of_every_step_counts(noted: list[tuple[int, str, float]]) -> None:
    corrected, plain = LessonBook(), LessonBook()
    last = {(step, kind): gain for step, kind, gain in noted}
    for step, kind, gain in noted:
        corrected.note(step, kind, gain)
    for (step, kind), gain in last.items():
        plain.note(step, kind, gain)
    assert corrected.lines() == plain.lines()


def test_what_was_tried_often_in_vain_is_told_and_what_it_broke() -> None:
    told = lessons(*(("tile-loops: i and j", gain) for gain in (0.9, 0.0, 1.01)))
    assert told == ("tile-loops: 3 tries without a certain gain, of which 1 broke the program",)


def test_one_failure_is_no_lesson() -> None:
    assert lessons(("tile-loops: i and j", 0.0), ("", 5.0)) == ()


def test_a_models_sentence_is_taken_as_it_is_and_cut() -> None:
    (told,) = lessons(("Change the order: rows are now\n contiguous " + "x" * 500, 2.0))
    assert told.startswith("Change the order: rows are now contiguous x")
    assert len(told) < 160


def test_only_the_best_are_told() -> None:
    told = lessons(*((f"change number {n}", 1.1 + n / 100) for n in range(50)))
    assert len(told) == 4
    assert told[0].startswith("change number 49")
