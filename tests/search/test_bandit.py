"""The bandit: asks everybody, and those that pay more often."""

from __future__ import annotations

import random
from collections import Counter

from kernel_smith.search.bandit import Bandit


def asked(bandit: Bandit, worth: dict[str, float], times: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for _ in range(times):
        name = bandit.choose()
        assert name is not None
        counts[name] += 1
        bandit.reward(name, worth[name])
    return counts


def test_who_pays_is_asked_more_often_and_nobody_is_forgotten() -> None:
    counts = asked(Bandit({"good": 1.0, "poor": 1.0}), {"good": 1.5, "poor": 0.9}, 200)
    assert counts["good"] > 2 * counts["poor"]
    assert counts["poor"] > 5


def test_one_whose_steps_pay_far_more_often_gets_most_asks() -> None:
    """Steps that pay are few, and gain little: one in three brings 5%, or one in a hundred."""
    chance, share = random.Random(0), 0.0
    for _ in range(20):
        bandit = Bandit({"good": 1.0, "poor": 1.0})
        for step in range(60):
            name = bandit.choose()
            assert name is not None
            bandit.answered(name)
            pays = chance.random() < (0.37 if name == "good" else 0.01)
            bandit.reward(name, 1.05 if pays else 1.0, step)
            share += (name == "good") / 60 / 20
    assert share > 0.75


def test_a_larger_weight_is_asked_more_often() -> None:
    counts = asked(Bandit({"heavy": 3.0, "light": 1.0}), {"heavy": 1.1, "light": 1.1}, 100)
    assert counts["heavy"] > counts["light"]


def test_one_who_stops_paying_is_asked_less() -> None:
    bandit = Bandit({"fading": 1.0, "steady": 1.0})
    asked(bandit, {"fading": 2.0, "steady": 1.2}, 60)
    later = asked(bandit, {"fading": 0.0, "steady": 1.2}, 200)
    assert later["steady"] > later["fading"]


def test_no_weight_means_never() -> None:
    assert asked(Bandit({"on": 1.0, "off": 0.0}), {"on": 1.0}, 20) == {"on": 20}


def test_unavailable_proposers_are_passed_over() -> None:
    bandit = Bandit({"a": 1.0, "b": 1.0})
    assert {bandit.choose(["b"]) for _ in range(5)} == {"b"}
    assert bandit.choose([]) is None


def test_what_a_step_shows_when_it_is_measured_again_counts() -> None:
    """Two proposers with the same steps, one of them by luck."""
    bandit = Bandit({"lucky": 1.0, "steady": 1.0})
    for step in range(20):
        bandit.reward("lucky", 2.0, step)
        bandit.reward("steady", 1.3, 100 + step)
    assert bandit.choose() == "lucky"
    for step in range(20):
        bandit.correct("lucky", 1.0, step)
    assert [bandit.choose() for _ in range(2)] == ["steady", "steady"]


def test_a_step_that_is_forgotten_is_not_corrected() -> None:
    once, twice = (Bandit({"one": 1.0, "two": 1.0}) for _ in range(2))
    for bandit in (once, twice):
        for step in range(41):
            bandit.reward("one", 1.1, step)
    for step in (0, 1000):
        twice.correct("one", 2.0, step)
    twice.correct("nobody", 2.0, 5)
    assert [once.choose() for _ in range(30)] == [twice.choose() for _ in range(30)]


def test_one_that_only_heard_the_answers_chooses_alike() -> None:
    """As after a run was resumed."""
    live, rebuilt = (Bandit({"one": 1.0, "two": 1.0}) for _ in range(2))
    for step in range(30):
        name = live.choose()
        assert name is not None
        for bandit in (live, rebuilt):
            bandit.answered(name)
            bandit.reward(name, 1.5 if name == "one" else 1.0, step)
    assert live.asks == rebuilt.asks == 30
    assert [live.choose() for _ in range(30)] == [rebuilt.choose() for _ in range(30)]
