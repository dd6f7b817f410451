"""Policies over options: they find what a table shows, hold on new families, and travel as JSON."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.proposers.chooser.policy import Policy, read_policy
from kernel_smith.training.choices import boosting, weights
from kernel_smith.training.choices.examples import Choice, Example
from kernel_smith.training.choices.families import by_other_families, deal, kinds_in, splits
from kernel_smith.training.choices.matrix import Matrix, matrix_of, names_in
from kernel_smith.training.choices.replay import (
    ByKind,
    ByPolicy,
    Knowing,
    Uniform,
    one_choice,
    replay,
)

FAMILIES = ("red", "green", "blue", "white", "black", "grey")


def example(family: str, number: int, rng: random.Random) -> Example:
    """Vectors pay where accesses have unit stride, unrolling a little, and the rest nothing."""
    choices = []
    for edit in ("vectors", "unroll", "tile", "vectors"):
        unit = float(rng.random() < 0.5)
        gained = 0.8 * unit if edit == "vectors" else 0.1 if edit == "unroll" else 0.0
        features = {f"edit={edit}": 1.0, "unit": unit, "length": rng.random()}
        child = f"{family} {number} {len(choices)}"
        choices.append(Choice(edit, child, features, gained, gained))
    return Example(family, family, "x86_64", f"{family} {number}", tuple(choices), 0)


def examples() -> list[Example]:
    rng = random.Random(1)
    return [example(family, number, rng) for family in FAMILIES for number in range(12)]


def expected_of(policy: Policy, tested: list[Example]) -> float:
    """The reward of one choice, on average."""
    total = 0.0
    for each in tested:
        odds = policy.probabilities([choice.features for choice in each.choices])
        total += sum(p * choice.reward for p, choice in zip(odds, each.choices, strict=True))
    return total / len(tested)


def best_of(tested: list[Example]) -> float:
    return sum(max(choice.reward for choice in each.choices) for each in tested) / len(tested)


def held_out() -> tuple[list[Example], list[Example]]:
    return next(splits(examples(), 6, 26))


def test_trees_find_which_site_pays_on_a_family_that_they_never_saw(tmp_path: Path) -> None:
    known, tested = held_out()
    policy = boosting.fit_trees(known, boosting.Settings(fewest=8))
    assert expected_of(policy, tested) > 0.9 * best_of(tested)
    path = tmp_path / "policy.json"
    path.write_text(policy.model_dump_json())
    numbers = [choice.features for choice in tested[0].choices]
    assert read_policy(path).scores(numbers) == policy.scores(numbers)


def test_trees_by_rl_find_it_too_and_hesitate_less(tmp_path: Path) -> None:
    known, tested = held_out()
    policy = boosting.fit_policy_trees(known, replace(boosting.RL, fewest=8))
    assert expected_of(policy, tested) > 0.9 * best_of(tested)
    path = tmp_path / "policy.json"
    path.write_text(policy.model_dump_json())
    numbers = [choice.features for choice in tested[0].choices]
    assert read_policy(path).probabilities(numbers) == policy.probabilities(numbers)


def test_what_holds_for_any_kind_helps_with_one_that_was_never_tried() -> None:
    """A kind that no other family has, at two places: the wide policy knows which is better."""
    rng = random.Random(5)

    def either(family: str, number: int) -> Example:
        kinds = ("new", "new") if family == FAMILIES[-1] else ("one", "two")
        places = rng.sample((0.0, 1.0), 2)
        choices = tuple(
            Choice(edit, f"{number} {place}", {f"edit={edit}": 1.0, "here:x": place}, place, place)
            for edit, place in zip(kinds, places, strict=True)
        )
        return Example(family, family, "x86_64", f"{family} {number}", choices, 0)

    every = [either(family, number) for family in FAMILIES for number in range(12)]
    known = [each for each in every if each.family != FAMILIES[-1]]
    tested = [each for each in every if each.family == FAMILIES[-1]]
    narrow = weights.fit_weights(known, weights.Settings(steps=60)).rl
    wide = weights.fit_weights(known, weights.Settings(steps=60, wide=True)).rl
    assert expected_of(narrow, tested) == pytest.approx(0.5)
    assert expected_of(wide, tested) > 0.8
    numbers = [choice.features for choice in tested[0].choices]
    shown = Policy.model_validate_json(wide.model_dump_json()).scores(numbers)
    assert shown == pytest.approx(wide.scores(numbers))


def test_rl_expects_more_than_sft_and_both_more_than_chance() -> None:
    known, tested = held_out()
    fitted = weights.fit_weights(known, weights.Settings(steps=80))
    chance = expected_of(Policy(kind="weights"), tested)
    assert chance < expected_of(fitted.sft, tested) < expected_of(fitted.rl, tested)
    assert expected_of(fitted.sft, tested) <= expected_of(fitted.sharp, tested)


@pytest.mark.parametrize("objective", [weights.towards_gains, weights.expected_reward])
@given(st.lists(st.floats(-3, 3), min_size=8, max_size=8))
@settings(max_examples=30)
def test_gradients_are_those_of_the_objectives(
    objective: weights.Objective, scores: list[float]
) -> None:
    matrix = small_matrix()
    chosen, at = weights.Settings(), numpy.array(scores)
    _, gradient = objective(matrix, at, chosen)
    for index in range(len(at)):
        step = numpy.zeros_like(at)
        step[index] = 1e-5
        slope = (
            objective(matrix, at + step, chosen)[0] - objective(matrix, at - step, chosen)[0]
        ) / 2e-5
        assert gradient[index] == pytest.approx(slope, abs=1e-5)


def small_matrix() -> Matrix:
    two = examples()[:2]
    return matrix_of(two, dict, names_in(two, dict))


def test_what_a_kind_gained_never_comes_from_the_own_family() -> None:
    known = examples()
    lone = Choice("rare", "c", {"edit=rare": 1.0}, 1.0, 1.0)
    known.append(Example("red", "red", "x86_64", "r", (lone,), 0))
    told = by_other_families(known)[-1].choices[0].features["kind"]
    assert "edit=rare" in kinds_in(known)
    elsewhere = by_other_families([*known[:-1], Example("x", "x", "", "r", (lone,), 0)])
    assert told == elsewhere[-1].choices[0].features["kind"]  # as if it had never been tried


@given(st.sets(st.integers(0, 50).map(str), min_size=6), st.integers(0, 9))
@settings(max_examples=30)
def test_families_are_dealt_once_each_whatever_their_order(names: set[str], seed: int) -> None:
    dealt = deal(names, 6, seed)
    assert sorted(name for part in dealt for name in part) == sorted(names)
    assert dealt == deal(sorted(names, reverse=True), 6, seed)


def test_a_file_that_is_no_policy_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"kind": "hope"}')
    with pytest.raises(BadInput, match=r"policy\.json: cannot be read as a policy"):
        read_policy(path)


def two_levels() -> dict[str, Example]:
    def choice(child: str, drift: float | None) -> Choice:
        reward = max(drift or 0.0, 0.0)
        return Choice(child[0], child, {f"edit={child[0]}": 1.0}, reward, drift)

    first = (choice("a", 0.1), choice("b", 0.5), choice("c", None), choice("d", -0.4))
    second = (choice("e", 0.2), choice("f", 0.0))
    return {
        "start": Example("t", "f", "", "start", first, 0),
        "b": Example("t", "f", "", "b", second, 0),
    }


def test_a_run_builds_on_what_gained_and_one_who_knows_is_fastest() -> None:
    states = two_levels()
    assert replay(states, "start", Knowing, "s", 4) == pytest.approx([0.5, 0.7, 0.7, 0.7])


@pytest.mark.parametrize(
    "make", [Uniform, lambda: ByKind({}, learns=True), lambda: ByPolicy(Policy(kind="weights"), {})]
)
@given(seed=st.integers(0, 200))
@settings(max_examples=25)
def test_every_run_rises_repeats_itself_and_ends_where_the_table_does(
    make: Callable[[], Uniform], seed: int
) -> None:
    states = two_levels()
    reached = replay(states, "start", make, str(seed), 8)
    assert reached == replay(states, "start", make, str(seed), 8)
    assert reached == sorted(reached)
    assert reached[-1] == pytest.approx(0.7)  # six options in all, each proposed once


def test_one_choice_is_worth_what_is_drawn() -> None:
    start = two_levels()["start"]
    assert one_choice(start, Knowing, "s", 4) == 0.5
    assert one_choice(start, Uniform, "s", 4000) == pytest.approx(0.6 / 4, abs=0.02)


def test_a_program_that_was_judged_on_two_machines_is_two_states() -> None:
    states, odds = two_levels(), {}
    start = states["start"]
    fewer = Example("t", "f", "aarch64", "start", start.choices[:1], 3)
    for each in (fewer, start):
        left = range(len(each.choices))
        ByPolicy(Policy(kind="weights"), odds).choose(each, left, random.Random(0))
    assert {machine: len(own) for (machine, _), own in odds.items()} == {"aarch64": 1, "": 4}
