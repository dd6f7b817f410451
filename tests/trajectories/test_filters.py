"""Each filter keeps what it should and refuses what it should; together they only refuse more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from step_makers import TASK, elite, evaluation, first_step, gain, later_step, program

from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Elite, Interval, Task, TrainingStep
from kernel_smith.trajectories.counting_filters import difficulty
from kernel_smith.trajectories.filters import (
    FILTERS,
    KEPT,
    PRESETS,
    Filter,
    FilterSettings,
    chosen,
    sift,
)

STATEFUL = {"new", "balanced"}
STATELESS = sorted(set(FILTERS) - STATEFUL)


def one(name: str, **settings: Any) -> Filter:
    (made,) = chosen([name], FilterSettings(**settings))
    return made


def kept(steps: Sequence[TrainingStep], names: Sequence[str], **settings: Any) -> list[int]:
    filters = chosen(names, FilterSettings(**settings))
    return [step.step for step in sift(steps, filters, Counter())]


def untimed(number: int, **how: bool) -> Elite:
    return elite(number, 1.0, timing=None, **how)


@pytest.mark.parametrize("name", FILTERS)
def test_a_good_step_passes_every_filter(name: str) -> None:
    assert one(name).refuse(later_step()) is None
    assert one(name).refuse(first_step()) is None


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("correct", {"child": elite(2, None)}),
        ("correct", {"parent": elite(1, None)}),
        ("timed", {"child": untimed(2, interpreted=True)}),
        ("timed", {"child": untimed(2, conformance=True)}),
        ("timed", {"parent": untimed(1, interpreted=True)}),
        ("timed", {"child": elite(2, 1.5, made_up=True)}),
        ("honest-lineage", {"flagged": ("0" * 64,)}),
        ("best-step", {"was_best": False}),
        ("faster", {"gain": None}),
        ("faster", {"gain": gain(1.005)}),
        ("faster", {"gain": gain(0.9)}),
        ("faster", {"gain": gain(1.3, width=0.3)}),
        ("measured-again", {"gain": None}),
        ("measured-again", {"gain": gain(2.0).model_copy(update={"measured_again": False})}),
        ("not-an-artefact", {"gain_over_grandparent": gain(1.3, width=0.3)}),
        ("faster-everywhere", {"gain": gain(1.5, wide=2.0, tall=0.9)}),
        ("faster-everywhere", {"gain": gain(1.5).model_copy(update={"workloads": ()})}),
        ("tail", {"gain": gain(1.5, p99=0.9)}),
        ("tail", {"gain": gain(1.5, p99=None)}),
        ("not-an-artefact", {"gain_over_grandparent": gain(0.95)}),
        ("not-an-artefact", {"gain_over_grandparent": gain(1.0)}),
        ("not-an-artefact", {"gain_over_grandparent": None}),
        ("not-seen-better", {"best_shown": 1.3}),
    ],
)
def test_a_later_step_is_refused(name: str, changes: dict[str, Any]) -> None:
    assert one(name).refuse(later_step(**changes))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("faster-everywhere", {"gain": gain(1.5, wide=2.0, tall=0.99)}),
        ("tail", {"gain": gain(1.5, p99=0.96)}),
        ("not-seen-better", {"best_shown": 1.1}),
        ("not-an-artefact", {"grandparent": None, "gain_over_grandparent": None}),
    ],
)
def test_a_later_step_passes_within_the_limits(name: str, changes: dict[str, Any]) -> None:
    assert one(name).refuse(later_step(**changes)) is None


@pytest.mark.parametrize("preset", PRESETS)
@given(
    low=st.floats(0.01, 1.0),
    up=st.floats(1.0, 100.0),
    again=st.booleans(),
    side_by_side=st.booleans(),
)
def test_no_preset_keeps_a_step_whose_gain_may_be_none(
    preset: str, low: float, up: float, again: bool, side_by_side: bool
) -> None:
    noise = Interval(value=(low * up) ** 0.5, low=low, high=up)
    measured = {"overall": noise, "measured_again": again, "side_by_side": side_by_side}
    step = later_step(gain=gain(1.0).model_copy(update=measured))
    assert kept([step], PRESETS[preset]) == []


def test_nobody_can_ask_for_less_than_a_gain() -> None:
    with pytest.raises(ValidationError):
        FilterSettings(least_gain=0.9)


def test_difficulty_is_by_what_is_certain_of_a_gain() -> None:
    wide, sharp, none = (
        difficulty(later_step(gain=gain(value, width=width)))
        for value, width in ((3.0, 0.61), (1.19, 0.005), (1.0, 0.01))
    )
    assert wide == sharp > none
    assert difficulty(later_step(gain=gain(1.3, width=0.35))) == none


def test_a_first_step_need_not_be_faster() -> None:
    slow = gain(0.5, p99=0.5, wide=0.4, tall=0.6)
    step = first_step(child=elite(0, 0.5), gain=slow, was_best=False)
    assert kept([step], PRESETS["sft"]) == [0]


def test_a_first_step_has_to_be_correct() -> None:
    assert kept([first_step(child=elite(0, None), gain=None)], ["correct"]) == []


def test_thresholds_are_settings() -> None:
    step = later_step(gain=gain(1.25, p99=0.9, wide=1.5, tall=0.9))
    assert one("faster", least_gain=1.3).refuse(step)
    assert one("tail", tail=0.2).refuse(step) is None
    assert one("faster-everywhere", slack=0.2).refuse(step) is None


REFERENCE = """
import torch

TASK = {"family": "softmax"}


class Model(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(size, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(x)
        return torch.softmax(hidden, dim=1) * max(x.shape)


def get_inputs():
    return [torch.randn(8, 8)]
"""

REWORDED = '''
"""The same with other words and sizes."""

import torch


class Model(torch.nn.Module):
    """Project, then normalise."""

    def __init__(self, width):
        super().__init__()
        self.projection = torch.nn.Linear(width, 512)

    def forward(self, inputs):
        y = self.projection(inputs)
        return torch.softmax(y, dim=2) * max(inputs.shape)


def get_inputs():
    return [torch.rand(4096, 16), ]
'''


@pytest.mark.parametrize("held", ["row_softmax", "softmax"])
def test_a_task_is_held_out_by_its_name_or_family(held: str) -> None:
    assert one("held-out", held_out=("other", held)).refuse(later_step())
    assert one("held-out", held_out=("other",)).refuse(later_step()) is None


def test_a_task_is_held_out_by_a_reference_that_is_the_same_in_other_words() -> None:
    held_out = one("held-out", held_out_references=(REFERENCE,))
    assert held_out.refuse(later_step(task=Task(name="mined", source=REWORDED)))


@pytest.mark.parametrize(
    ("old", "new"),
    [("softmax(y", "log_softmax(y"), ("* max", "* min"), ("nn.Linear", "nn.Conv1d")],
)
def test_a_reference_that_computes_something_else_is_not_held_out(old: str, new: str) -> None:
    assert old in REWORDED
    held_out = one("held-out", held_out_references=(REFERENCE,))
    other = Task(name="mined", source=REWORDED.replace(old, new))
    assert held_out.refuse(later_step(task=other)) is None


def test_a_reference_that_is_no_python_is_compared_as_it_stands() -> None:
    held_out = one("held-out", held_out_references=("class Model(",))
    assert held_out.refuse(later_step(task=Task(name="odd", source="class Model(")))
    assert held_out.refuse(later_step()) is None


def rewritten(source: str, speedup: float = 1.5) -> Elite:
    candidate = Candidate(source=source)
    return Elite(candidate=candidate, evaluation=evaluation(candidate, speedup))


def changed(before: str, after: str) -> TrainingStep:
    return later_step(parent=rewritten(before), child=rewritten(after))


def test_the_same_change_in_other_words_or_numbers_is_kept_once() -> None:
    new = one("new")
    assert new.refuse(changed("a = f(64)\n", "a = g(64)\n")) is None
    assert new.refuse(changed("a = f(64)  # slow\n", "a   =   g(64)\n"))
    assert new.refuse(changed("a = f(32)\n", "a = g(32)\n"))
    assert new.refuse(changed("a = f(64)\n", "a = h(64)\n")) is None


def test_where_numbers_are_all_that_changes_they_count() -> None:
    new = one("new")
    assert new.refuse(changed("a = f(64)\n", "a = f(128)\n")) is None
    assert new.refuse(changed("a = f(64)\n", "a = f(256)\n")) is None
    assert new.refuse(changed("a = f(64)  # slow\n", "a = f(128)\n"))


def test_a_first_program_is_new_for_another_reference() -> None:
    new = one("new")
    other = Task(name="other", source="class Model: other = True")
    assert new.refuse(first_step()) is None
    assert new.refuse(first_step(task=other)) is None
    assert new.refuse(first_step(task=other))


def test_no_task_family_or_difficulty_takes_all_places() -> None:
    other = TASK.model_copy(update={"name": "column_softmax"})
    steps = [later_step(step=number, task=TASK if number < 3 else other) for number in range(6)]
    assert kept(steps, ["balanced"], per_task=2) == [0, 1, 3, 4]
    assert kept(steps, ["balanced"], per_family=4) == [0, 1, 2, 3]
    assert kept(steps, ["balanced"], per_task=None, per_family=None) == list(range(6))
    harder = [later_step(step=6, depth=20), later_step(step=7, gain=gain(3.0))]
    assert kept([*steps, *harder], ["balanced"], per_difficulty=2) == [0, 1, 6, 7]


def test_steps_that_are_refused_take_no_place() -> None:
    steps = [later_step(step=0, was_best=False), later_step(step=1), later_step(step=2)]
    assert kept(steps, ["balanced", "new", "best-step"], per_task=1) == [1]


def test_every_refusal_is_counted_once() -> None:
    counts: Counter[str] = Counter()
    bad = later_step(child=elite(2, None), was_best=False)
    steps = [later_step(), later_step(), bad, later_step(was_best=False)]
    assert len(list(sift(steps, chosen(PRESETS["rl"], FilterSettings()), counts))) == 1
    assert counts == {KEPT: 1, "new": 1, "correct": 1, "best-step": 1}


def test_presets_and_descriptions_cover_the_filters() -> None:
    assert set(PRESETS["sft"]) | set(PRESETS["rl"]) == set(FILTERS)
    assert set(PRESETS["sft"]) < set(PRESETS["rl"])
    assert all(each.explains.endswith(".") for each in FILTERS.values())


def test_an_unknown_filter_is_named_with_those_that_exist() -> None:
    with pytest.raises(BadInput, match=r"'quick'.*faster-everywhere"):
        chosen(["correct", "quick"], FilterSettings())


def test_filters_are_fresh_each_time() -> None:
    assert kept([later_step()], ["new"]) == kept([later_step()], ["new"]) == [2]


@st.composite
def made_up_steps(draw: st.DrawFn) -> list[TrainingStep]:
    """Steps with something wrong about most of them."""
    ratios = st.sampled_from([0.8, 1.0, 1.2, 2.0])
    steps = []
    for number in range(draw(st.integers(1, 8))):
        make = draw(st.sampled_from([later_step, first_step]))
        step = make(
            step=number,
            child=elite(draw(st.integers(2, 4)), draw(st.sampled_from([None, 1.1, 1.5]))),
            gain=draw(st.none() | st.builds(gain, ratios, p99=ratios, wide=ratios, tall=ratios)),
            was_best=draw(st.booleans()),
            best_shown=draw(st.sampled_from([0.0, 1.0, 1.4])),
            flagged=draw(st.sampled_from([(), (program(9).content_hash,)])),
        )
        if not step.first:
            update = {"gain_over_grandparent": draw(st.none() | st.builds(gain, ratios))}
            step = step.model_copy(update=update)
        steps.append(step)
    return steps


@given(made_up_steps(), st.permutations(STATELESS), st.integers(0, len(STATELESS)))
def test_the_order_of_filters_without_memory_does_not_matter(
    steps: list[TrainingStep], names: list[str], cut: int
) -> None:
    made = {each.name: each for each in chosen(names, FilterSettings())}
    one_way = list(sift(steps, [made[name] for name in names[:cut]], Counter()))
    other_way = list(sift(steps, [made[name] for name in reversed(names[:cut])], Counter()))
    assert one_way == other_way


@given(made_up_steps(), st.permutations([*STATELESS, "new"]), st.integers(0, len(STATELESS)))
def test_more_filters_never_keep_more(
    steps: list[TrainingStep], names: list[str], cut: int
) -> None:
    counts: Counter[str] = Counter()
    few = kept(steps, names[:cut])
    more = list(sift(steps, chosen(names, FilterSettings()), counts))
    assert len(more) <= len(few)
    assert counts.total() == len(steps)
    assert counts[KEPT] == len(more)
