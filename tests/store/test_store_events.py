"""Events come back as they were stored, in order, and long texts are stored once."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_events import (
    BEGIN,
    candidate,
    conversation,
    evaluated,
    evaluation,
    proposed,
    started,
    steps,
)

from kernel_smith.errors import BadInput
from kernel_smith.records import (
    Candidate,
    Conversation,
    Declined,
    Event,
    Message,
    Migrated,
    Note,
    Noted,
    Remeasured,
    RunEnded,
    RunResumed,
    StepDropped,
)
from kernel_smith.store import Store, default_path
from kernel_smith.store.texts import deflate, inflate


def stored(store: Store, run: str = "run-1", after: int = 0) -> list[Event]:
    return [event for _, event in store.events(run, after)]


def test_every_kind_of_event_comes_back_as_it_was(store: Store) -> None:
    events: list[Event] = [
        proposed(0),
        evaluated(0, 1.5),
        proposed(1, candidate(0), conversation=conversation(1)),
        evaluated(1, None),
        StepDropped(
            step=2,
            proposer="model",
            parent=candidate(1).content_hash,
            why="known",
            conversation=conversation(2),
            at=BEGIN,
        ),
        StepDropped(step=3, proposer="tuner", why="known", at=BEGIN),
        Remeasured(
            candidate=candidate(0).content_hash,
            evaluation=evaluation(candidate(0), 1.4),
            at=BEGIN,
        ),
        Declined(worker="tuner", parent=candidate(0).content_hash, why="tried", at=BEGIN),
        Noted(
            worker="model",
            label={"node": 3, "role": "planner"},
            note=Note(text="a plan " * 50, conversation=conversation(3)),
            at=BEGIN,
        ),
        Noted(worker="model", note=Note(text="short"), at=BEGIN),
        Migrated(candidate=candidate(0).content_hash, source=0, target=1, at=BEGIN),
        RunEnded(why="budget", at=BEGIN),
        RunResumed(at=BEGIN),
    ]
    numbers = [store.append("run-1", event) for event in events]
    assert numbers == list(range(2, len(events) + 2))
    assert stored(store) == [started(), *events]


@settings(max_examples=30)
@given(texts=st.lists(st.text(max_size=2000), min_size=1, max_size=6))
def test_any_text_survives(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        messages = tuple(Message(role="user", content=text) for text in texts)
        said = Conversation(model=texts[0], messages=messages, response=texts[-1])
        events: list[Event] = [
            proposed(step, candidate=Candidate(source=text * 3), summary=text, conversation=said)
            for step, text in enumerate(texts)
        ]
        with Store.open(Path(folder) / "s.sqlite", create=True) as store:
            store.append("run-1", started())
            for event in events:
                store.append("run-1", event)
        with Store.open(Path(folder) / "s.sqlite") as again:
            assert stored(again)[1:] == events


def test_events_are_read_from_any_place_on_and_over_many_pages(store: Store) -> None:
    events = list(steps(100))
    for event in events:
        store.append("run-1", event)
    assert stored(store, after=1) == events
    assert stored(store, after=150) == events[149:]
    assert stored(store, after=201) == []


def test_what_is_appended_while_reading_is_read_too(store: Store) -> None:
    reading = store.events("run-1")
    assert next(reading)[0] == 1
    store.append("run-1", proposed(0))
    assert next(reading) == (2, proposed(0))


def test_runs_are_numbered_apart(store: Store) -> None:
    store.append("run-2", started("run-2"))
    assert store.append("run-1", proposed(0)) == 2
    assert store.append("run-2", proposed(0)) == 2
    assert stored(store, "run-2") == [started("run-2"), proposed(0)]


def test_threads_append_without_gaps(store: Store) -> None:
    def write(first: int) -> None:
        for step in range(first, first + 20):
            store.append("run-1", proposed(step))

    threads = [threading.Thread(target=write, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sequence for sequence, _ in store.events("run-1")] == list(range(1, 82))


def test_candidates_are_found_by_hash(store: Store) -> None:
    named = Candidate(source="x = 1\n", backend="triton", name="mine.py")
    store.append("run-1", proposed(0, candidate=named))
    assert store.candidate(named.content_hash) == named
    for unknown in ("0" * 64, "not hex", ""):
        with pytest.raises(BadInput, match="no candidate"):
            store.candidate(unknown)


def test_a_prompt_that_repeats_is_stored_once(store: Store, path: Path) -> None:
    for step in range(50):
        store.append("run-1", proposed(step, conversation=conversation(step)))
    long = conversation(0).messages[0].content
    with sqlite3.connect(path) as reader:
        (texts,) = reader.execute("SELECT count(*) FROM texts").fetchone()
        (largest,) = reader.execute("SELECT max(length(content)) FROM texts").fetchone()
    reader.close()
    assert texts == 1 + 3 * 50  # the system message; a program, a question and an answer each
    assert largest < len(long) / 4


def test_a_program_is_stored_as_its_difference_from_the_first(store: Store, path: Path) -> None:
    for step in range(10):
        store.append("run-1", proposed(step))
    with sqlite3.connect(path) as reader:
        sizes = [n for (n,) in reader.execute("SELECT length(content) FROM texts ORDER BY id")]
    reader.close()
    assert max(sizes[1:]) < sizes[0] / 2


def test_a_run_may_build_on_the_texts_of_another(store: Store) -> None:
    for event in steps(5):
        store.append("run-1", event)
    store.append("run-2", started("run-2"))
    later = list(steps(8))[4:]  # the first program of this run has a base in the other one
    for event in later:
        store.append("run-2", event)
    assert stored(store, "run-2")[1:] == later


def test_a_text_that_another_connection_has_stored_is_not_stored_again(
    store: Store, path: Path
) -> None:
    store.append("run-1", proposed(0))
    with Store.open(path) as other:
        other.append("run-1", proposed(1, candidate=candidate(0)))
        assert stored(other) == [started(), proposed(0), proposed(1, candidate=candidate(0))]
    with sqlite3.connect(path) as reader:
        (texts,) = reader.execute("SELECT count(*) FROM texts").fetchone()
    reader.close()
    assert texts == 1


def test_a_failed_append_leaves_nothing_behind(store: Store) -> None:
    with pytest.raises(BadInput, match="no run"):
        store.append("run-9", proposed(0))
    store.append("run-1", proposed(0))
    assert stored(store) == [started(), proposed(0)]


def test_a_run_starts_once_and_with_its_own_event(store: Store) -> None:
    with pytest.raises(BadInput, match="run called run-1 exists"):
        store.append("run-1", started())
    with pytest.raises(ValueError, match="cannot start"):
        store.append("run-2", started("run-3"))
    assert store.run_ids_matching("") == ["run-1"]


@pytest.mark.parametrize("name", ["", "latest", "-o", "a\nb", "x" * 201])
def test_ids_that_no_command_could_take_are_refused(store: Store, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be a run's id"):
        store.append(name, started(name))
    with pytest.raises(BadInput, match="cannot be a run's id"):
        store.lock(name)


def test_the_default_file_is_in_this_folder_or_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KERNEL_SMITH_STORE", raising=False)
    assert default_path() == Path(".kernel-smith/runs.sqlite")
    monkeypatch.setenv("KERNEL_SMITH_STORE", "/elsewhere/s.sqlite")
    assert default_path() == Path("/elsewhere/s.sqlite")


def test_one_event_is_found_by_its_number(store: Store) -> None:
    numbered = [(store.append("run-1", event), event) for event in steps(3, talking=True)]
    for sequence, event in numbered:
        assert store.event("run-1", sequence) == event


def test_a_number_that_no_event_has_is_refused(store: Store) -> None:
    with pytest.raises(BadInput, match="no event 2, expected 1 to 1"):
        store.event("run-1", 2)


def test_events_of_some_kinds_come_in_order_with_their_numbers(store: Store) -> None:
    for event in steps(100):
        store.append("run-1", event)
    found = list(store.events("run-1", kinds=("run-started", "step-evaluated")))
    assert [sequence for sequence, _ in found] == [1, *range(3, 202, 2)]
    assert {event.kind for _, event in found[1:]} == {"step-evaluated"}


@given(st.text(max_size=40), st.integers(0, 2000), st.text("ab", max_size=40), st.integers(0, 2000))
def test_texts_of_every_length_come_back_with_and_without_a_base(
    text: str, times: int, base: str, base_times: int
) -> None:
    content, dictionary = text * times, (base * base_times).encode()
    assert inflate(deflate(content, content.encode(), dictionary), dictionary) == content
