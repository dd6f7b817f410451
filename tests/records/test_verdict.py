"""The closed vocabulary of stages and reasons."""

from __future__ import annotations

import pytest

from kernel_smith.records import MEANINGS, Reason, Stage


def test_every_reason_has_a_meaning_and_nothing_else_has() -> None:
    assert set(MEANINGS) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_meaning_explains_and_advises(reason: Reason) -> None:
    meaning = MEANINGS[reason]
    assert len(meaning.sentence.split()) >= 3
    assert meaning.sentence[-1].isalnum(), "prose.render adds the full stop"
    assert meaning.advice.endswith(".")


def test_every_failing_stage_has_a_reason_and_ok_has_none() -> None:
    assert {meaning.stage for meaning in MEANINGS.values()} == set(Stage) - {Stage.OK}


def test_sentences_tell_reasons_apart() -> None:
    sentences = [meaning.sentence for meaning in MEANINGS.values()]
    assert len(set(sentences)) == len(sentences)


@pytest.mark.parametrize("word", [*Stage, *Reason])
def test_words_are_lower_case_with_hyphens(word: str) -> None:
    assert all(part.isalpha() and part.islower() for part in str(word).split("-"))
