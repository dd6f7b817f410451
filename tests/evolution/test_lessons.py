"""What a run tells about the changes that it has seen."""

from __future__ import annotations

from kernel_smith.evolution.lessons import Lessons


def lessons(*noted: tuple[str, float]) -> tuple[str, ...]:
    found = Lessons()
    for summary, gain in noted:
        found.note(summary, gain)
    return found.told()


def test_what_paid_comes_first_and_the_best_of_it_at_the_top() -> None:
    told = lessons(("unroll-loop: loop over k", 1.1), ("simd-loop: loop over i", 1.5))
    assert told == (
        "simd-loop: made a program 1.50 times as fast",
        "unroll-loop: made a program 1.10 times as fast",
    )


def test_named_changes_of_one_kind_are_one_lesson() -> None:
    told = lessons(
        *((f"unroll-loop: loop over {name}", 1.0 + n / 10) for n, name in enumerate("ijk"))
    )
    assert told == ("unroll-loop: made a program 1.20 times as fast, in 3 tries",)


def test_what_was_tried_often_in_vain_is_told_and_what_it_broke() -> None:
    told = lessons(*(("tile-loops: i and j", gain) for gain in (0.9, 0.0, 1.01)))
    assert told == ("tile-loops: 3 tries without a gain, of which 1 broke the program",)


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
