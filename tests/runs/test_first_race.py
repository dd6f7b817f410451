"""First programs that are swept before the judge sees one: what is taken of which, and what of the
others is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_smith.errors import BadInput, InternalError
from kernel_smith.proposers import seed
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.seed import RECIPES, Recipe, Seed
from kernel_smith.records import Candidate, Interval, Proposal, Sweep, Swept, Task, Workload
from kernel_smith.runs.first_programs import first_programs

TASK = Task(
    name="rows",
    source="class Model: pass",
    workloads=(Workload(name="few"), Workload(name="many")),
)
PROGRAM = """
import torch


def run_few(x):
    return torch.{few}(x)


def run_many(x):
    return torch.{many}(x)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return run_few(x) if len(x) < 9 else run_many(x)

# triton_red_fused_0
"""
Race = Callable[[Task, Candidate, Sequence[str]], Sweep]


def written(name: str) -> Seed:
    source = PROGRAM.format(few=f"few_{name}", many=f"many_{name}")
    return Seed(
        task="rows",
        backend="triton",
        source=source,
        workloads=("few", "many"),
        kernels=2,
        torch="2",
        recipe=name,
    )


class Maker:
    """Three recipes make programs: of them the last makes what the default does."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def make(self, recipe: Recipe) -> Seed:
        programs = {"tuned": "tuned", "whole-rows": "whole", "looped-rows": "default"}
        if recipe.name not in programs:
            raise BadInput("cannot be used", hint="none")
        return written(programs[recipe.name])

    def close(self) -> None: ...


def swept(few: float, many: float) -> Swept:
    gains = {"few": few, "many": many}
    return Swept(
        gain=interval((few * many) ** 0.5),
        by_workload={name: interval(gain) for name, gain in gains.items()},
    )


def interval(value: float) -> Interval:
    return Interval(value=value, low=0.99 * value, high=1.01 * value)


def answers(
    monkeypatch: pytest.MonkeyPatch,
    race: Race | None,
    *,
    refuse: bool = False,
    declined: Counter[str] | None = None,
    **settings: Any,
) -> tuple[list[Proposal], list[str]]:
    """What the openers of a run give, and what they say where they give nothing."""

    def make_seed(*_: object, **__: object) -> Seed:
        if refuse:
            raise BadInput("all of it is left to the library", hint="none")
        return written("default")

    monkeypatch.setattr(seed, "make_seed", make_seed)
    monkeypatch.setattr(seed, "SeedMaker", Maker)
    state = SimpleNamespace(
        task=TASK,
        config=SimpleNamespace(backend="triton", settings={"seed": {"wanted": True, **settings}}),
        by_proposer=Counter(),
        dropped=Counter(),
        declined=declined or Counter(),
    )
    given, said = [], []
    for _, opener in first_programs(state, race):  # type: ignore[arg-type]
        try:
            given.append(opener())
        except (NothingToPropose, BadInput) as none:
            said.append(str(none))
    return given, said


def test_one_program_is_made_of_whoever_leads_on_each_workload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raced: list[list[str]] = []

    def race(task: Task, first: Candidate, variants: Sequence[str]) -> Sweep:
        assert "few_default" in first.source
        raced.append(list(variants))
        return Sweep(swept=(swept(1.4, 0.7), swept(0.9, 1.2)), seconds=3.0)

    given, said = answers(monkeypatch, race)
    assert [["tuned" in each for each in variants] for variants in raced] == [[True, False]]
    first, leaders = given
    assert "torch.few_tuned" in leaders.candidate.source
    assert "torch.many_whole" in leaders.candidate.source
    assert leaders.summary.endswith("few of rows_tuned.py, many of rows_whole.py")
    assert leaders.device_seconds == 3.0 and first.device_seconds == 0
    assert len(given) + len(said) == len(RECIPES) + 1, "nobody waits for more than there is"
    assert "swept beside the first program: 2 programs by other recipes" in said
    assert "native-products: not worth its time here" in said


def test_where_nobody_leads_nothing_more_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = (swept(1.0, 1.0), Swept(reason="wrong-values"))
    given, said = answers(monkeypatch, lambda *_: Sweep(swept=shown))
    assert len(given) == 1 and any("none leads anywhere" in each for each in said)


def broken(*_: object) -> Sweep:
    raise InternalError("a judge ended")


@pytest.mark.parametrize("race", [lambda *_: Sweep(problem="the program itself failed"), broken])
def test_what_cannot_be_swept_is_judged_one_by_one(
    race: Race, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, _ = answers(monkeypatch, race)
    assert [each.candidate.name for each in given[1:]] == ["rows_tuned.py", "rows_whole.py"]


def test_without_a_first_program_there_is_nothing_to_sweep_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def race(*_: object) -> Sweep:
        raise AssertionError("nothing to race")

    given, _ = answers(monkeypatch, race, refuse=True)
    assert len(given) == 3


@pytest.mark.parametrize("left_out", [["race"], ["recipes"], ["own-kernels", "rewrites"]])
def test_parts_can_be_left_out(left_out: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Sweep(swept=(swept(2.0, 2.0), swept(1.0, 1.0)))
    given, said = answers(monkeypatch, lambda *_: shown, left_out=left_out)
    leads = any("led among" in each.summary for each in given)
    assert leads == ("own-kernels" in left_out)
    others = len(given) + len(said) - 1
    without = {"race": 0, "recipes": len(RECIPES) - 2, "own-kernels": 1, "rewrites": 1}
    assert others == len(RECIPES) - sum(without[name] for name in left_out)


def test_a_race_that_broke_off_is_not_held_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def race(*_: object) -> Sweep:
        calls.append(1)
        raise RuntimeError("a lane ended")

    with pytest.raises(RuntimeError):
        answers(monkeypatch, race)
    assert len(calls) == 1


def test_a_run_that_was_stopped_before_the_race_holds_it_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = Sweep(swept=(swept(2.0, 2.0), swept(1.0, 1.0)))
    given, _ = answers(monkeypatch, lambda *_: shown, declined=Counter(seed=1))
    assert ["led among" in each.summary for each in given] == [True], "the first one is known"
    every = Counter(seed=len(RECIPES) + 1)
    assert answers(monkeypatch, lambda *_: shown, declined=every) == ([], [])
