"""What a run begins with: the compiler's kernels by several recipes."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.proposers import seed
from kernel_smith.proposers.base import NothingToPropose, TryOut
from kernel_smith.proposers.seed import RECIPES, Recipe, Seed, find_recipe
from kernel_smith.records import Proposal, Task
from kernel_smith.runs.first_programs import first_programs

DEFAULT = Seed(
    task="t",
    backend="triton",
    source="triton_per_fused_0[1,](x)",
    workloads=("default",),
    kernels=1,
    library_calls=("addmm",),
    torch="2",
)


class Maker:
    """Refuses one recipe, and makes a program of each other."""

    closed = 0

    def __init__(self, *_: object, minutes: float, **__: object) -> None:
        assert minutes < 5, "a run has more to do"
        self.made: list[str] = []

    def make(self, recipe: Recipe) -> Seed:
        self.made.append(recipe.name)
        if recipe.name == "unsplit":
            raise BadInput("cannot be used", hint="none")
        what = {"source": f"# {recipe.name}", "recipe": recipe.name}
        done = ("sums taken through products",) if recipe.rewrites else ()
        return DEFAULT.model_copy(update={**what, "rewrites": done})

    def close(self) -> None:
        Maker.closed += 1


def begun(
    task: Task,
    backend: str,
    monkeypatch: pytest.MonkeyPatch,
    compiled: Seed = DEFAULT,
    *,
    left_out: tuple[str, ...] = (),
    race: TryOut | None = None,
) -> dict[str, str]:
    """What each opener of a run gives: a program's name, or why there is none."""
    monkeypatch.setattr(seed, "make_seed", lambda *_, **__: compiled)
    monkeypatch.setattr(seed, "SeedMaker", Maker)
    monkeypatch.setattr(Maker, "closed", 0)
    state = SimpleNamespace(
        task=task,
        config=SimpleNamespace(
            backend=backend, settings={"seed": {"wanted": True, "left_out": left_out}}
        ),
        by_proposer=Counter(),
        dropped=Counter(),
        declined=Counter(),
    )
    found = {}
    for name, opener in first_programs(state, race):
        assert name == "seed"
        try:
            made: Proposal = opener()
            found[made.candidate.name] = made.summary
        except NothingToPropose as none:
            found[str(none)] = ""
    return found


def test_a_run_on_a_gpu_begins_with_one_program_per_recipe(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = begun(task, "triton", monkeypatch)
    assert len(found) == len(RECIPES) + 1, "one of them without library calls"
    assert next(iter(found)) == "t_seed.py", "the run waits for this alone"
    assert found["t_whole_rows.py"] == "what torch.compile makes of it with whole rows in registers"
    assert "unsplit: cannot be used" in found
    assert "plain-layout: not worth its time here" in found
    assert Maker.closed == 1


def test_what_our_kernels_took_the_place_of_counts_as_well() -> None:
    """Where all is left to the library, the first program has nothing but kernels of ours."""
    alone = DEFAULT.model_copy(update={"library_calls": (), "source": "multiply[1, 1](a, b)"})
    assert RECIPES["native-products"].is_worth_it(alone)
    assert not RECIPES["plain-layout"].is_worth_it(alone)
    assert not RECIPES["whole-rows"].is_worth_it(alone)


def test_for_a_cpu_there_are_the_usual_recipe_and_rewrites(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = begun(task, "cpp", monkeypatch)
    assert len(found) == 3 and "rewritten: not worth its time here" in found
    assert Maker.closed == 0
    less = DEFAULT.model_copy(update={"rewrites": ("sums taken through products",)})
    found = begun(task, "cpp", monkeypatch, less)
    assert found["t_rewritten.py"].endswith("real arithmetic: sums taken through products")
    assert Maker.closed == 1


def test_rewrites_can_be_switched_off(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    less = DEFAULT.model_copy(update={"rewrites": ("sums taken through products",)})
    for backend in ("cpp", "triton"):
        found = begun(task, backend, monkeypatch, less, left_out=("rewrites",))
        assert not any("rewritten" in name for name in found)


def test_a_recipe_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadInput) as caught:
        find_recipe("fast")
    assert "default" in caught.value.hint and "native-products" in caught.value.hint
