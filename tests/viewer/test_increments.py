"""A page that is brought up to date is the page that would have been sent as a whole."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from viewer_samples import RUN, events

from kernel_smith.cli.task_words import words_of
from kernel_smith.store import Store
from kernel_smith.viewer import book as books
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.fold import RunFold
from kernel_smith.viewer.increments import ArrayChange, RunChange, as_data, changes
from kernel_smith.viewer.records import RunPage
from kernel_smith.viewer.run_page import run_page


def updated(before: dict[str, Any], change: RunChange) -> dict[str, Any]:
    """As the browser does it (page/source.js)."""

    def apply(owner: dict[str, Any], arrays: dict[str, ArrayChange]) -> dict[str, Any]:
        done = dict(owner)
        for name, each in arrays.items():
            array = owner[name][: each.size] + each.added
            for position, value in each.changed.items():
                array[position] = value
            done[name] = array
        return done

    page = apply({**before, **change.values, "sequence": change.sequence}, change.arrays)
    return {**page, "steps": apply(before["steps"], change.columns)}


@given(st.integers(0, 5), st.integers(1, 90), st.integers(1, 90))
def test_a_page_and_its_changes_make_the_next_page(seed: int, one: int, other: int) -> None:
    fold, pages = RunFold(), []
    for sequence, event in enumerate(events(steps=30, seed=seed), start=1):
        fold.add(sequence, event)
        if sequence in (min(one, other), max(one, other)):
            pages.append(as_data(run_page(fold, "running", None, ["scale"], None)))
    for before, after in itertools.pairwise(pages):
        change = RunChange.model_validate_json(changes(before, after).model_dump_json())
        assert updated(before, change) == after


def test_a_book_sends_what_is_new_and_all_to_those_it_does_not_remember(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.sqlite", create=True) as store:
        book = RunBook(store, words_of)
        made = list(events())
        for event in made[:60]:
            store.append(RUN, event)
        first = book.changes(RUN, None)
        assert isinstance(first, RunPage) and first.sequence == 60
        for event in made[60:]:
            store.append(RUN, event)
        change = book.changes(RUN, 60)
        assert isinstance(change, RunChange)
        assert updated(as_data(first), change) == as_data(book.page(RUN))
        assert len(change.columns["summary"].added) < len(first.steps.summary)
        assert isinstance(book.changes(RUN, 59), RunPage), "nobody was sent that state"
        again = book.changes(RUN, len(made))
        assert isinstance(again, RunChange) and not again.arrays and not again.columns


def test_states_of_pages_are_not_kept_for_ever(store_path: Path) -> None:
    with Store.open(store_path) as store:
        book = RunBook(store, words_of)
        sequence = book.page(RUN).sequence
        for each in range(books._KEPT_STATES + 3):
            book._sent[RUN, -each] = {}
        book.changes(RUN, None)
        assert len(book._sent) == books._KEPT_STATES
        assert isinstance(book.changes(RUN, sequence), RunChange)
