"""What a run begins with: programs that are there, and what the framework's compiler writes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from kernel_smith.errors import BadInput, UserError
from kernel_smith.evaluation.judge.platform.device_lock import using_device
from kernel_smith.proposers.base import NothingToPropose, TryOut
from kernel_smith.records import Candidate, Proposal, RunConfig, Task
from kernel_smith.records.counts import counted
from kernel_smith.runs.budget import GIVEN
from kernel_smith.runs.first_race import Outcome, hold_race
from kernel_smith.runs.loop import Opener
from kernel_smith.runs.state import RunState

if TYPE_CHECKING:
    from kernel_smith.proposers.seed import Recipe, Seed, SeedMaker
    from kernel_smith.proposers.seed.make import UseDevice

_SEED = "seed"
_RECIPE_MINUTES = 3.0  # each, waiting for the device included
_WORTH_RACING = 3  # programs beside the first one
_WAS_RACED = "it was swept with others, or is a program that is known"

REWRITES, RECIPES, OWN_KERNELS, RACE = "rewrites", "recipes", "own-kernels", "race"
LEFT_OUT = (REWRITES, RECIPES, OWN_KERNELS, RACE)
"""What of the beginning can be left out, by name."""

Opening = Callable[[], Proposal]
_DEVICE_OF_SEED = {"cpp": "cpu", "triton": "cuda"}  # what the framework's compiler writes


def begin_with(
    config: RunConfig,
    task: Task,
    starts: Sequence[Candidate],
    *,
    with_seed: bool,
    left_out: Collection[str] = (),
) -> RunConfig:
    """Keep in the configuration what a run begins with: the programs that are there, and what the
    framework's compiler makes of the task, where it writes for this backend. So a run that is
    resumed knows it, too. `left_out`: some of `LEFT_OUT`."""
    with_seed = with_seed and config.backend in _DEVICE_OF_SEED
    if not starts and not with_seed and "model" not in config.proposers:
        raise BadInput(
            f"task {task.name} has no starting kernel for backend {config.backend}",
            hint="name a program to start from: --start FILE, or have one written: --proposer model"
            + (" or --proposer seed" if config.backend in _DEVICE_OF_SEED else ""),
        )
    programs = [candidate.model_dump(mode="json") for candidate in starts]
    seed = {"wanted": with_seed, "left_out": sorted(left_out)}
    settings = config.settings | {GIVEN: {"programs": programs}, _SEED: seed}
    return config.model_copy(update={"settings": settings})


def first_programs(state: RunState, race: TryOut | None = None) -> list[Opener]:
    """Return what the run is to begin with and has not begun with yet. `race` sweeps programs."""

    def opening(candidate: Candidate) -> Callable[[], Proposal]:
        summary = f"the program that the run starts from: {candidate.name}"
        return lambda: Proposal(candidate=candidate, proposer=GIVEN, summary=summary)

    settings = state.config.settings
    # A library's run may have begun otherwise.
    programs = settings.get(GIVEN, {}).get("programs", ())
    starts = [Candidate.model_validate(each) for each in programs]
    openers: list[Opener] = [
        (GIVEN, opening(candidate)) for candidate in starts if not state.is_known(candidate)
    ]
    wanted = settings.get(_SEED, {})
    if wanted.get("wanted"):
        answered = sum(each[_SEED] for each in (state.by_proposer, state.dropped, state.declined))
        left_out = wanted.get("left_out", ())
        device = _DEVICE_OF_SEED[state.config.backend]
        seeds = _Seeds(state.task, device, None if RACE in left_out else race, left_out)
        openers += [(_SEED, opener) for opener in seeds.openers()[answered:]]
    return openers


class _Manner(TypedDict):
    """How seeds are made."""

    use_device: UseDevice
    compare: bool


class _Seeds:
    """What the framework's compiler writes, the same without its library calls, and what it writes
    by other recipes. A run waits for the first of them alone.

    With a `race` the others are compared before they are judged. `left_out`: what is not made.
    """

    def __init__(
        self, task: Task, device: str, race: TryOut | None, left_out: Collection[str] = ()
    ) -> None:
        self._task, self._device, self._race = task, device, race
        self._left_out = left_out
        self._made: Future[Seed] | None = None
        self._making = threading.Lock()
        self._in_turn = threading.Lock()
        self._racing = threading.Lock()
        self._maker: SeedMaker | None = None
        self._raced: Outcome | None = None

    def openers(self) -> list[Opening]:
        """In the order in which they are worth having."""
        others = self._others()
        if self._race is None or len(others) < _WORTH_RACING:
            return [self.compiled, *others]
        answers = [partial(self._after_race, place, others) for place in range(len(others))]
        return [self.compiled, *answers]

    def _others(self) -> list[Opening]:
        from kernel_smith.proposers.seed import recipes as known

        recipes = [
            recipe
            for recipe in known.RECIPES.values()
            if recipe is not known.DEFAULT
            and (self._device == "cuda" or recipe.anywhere)
            and (REWRITES if recipe.rewrites else RECIPES) not in self._left_out
        ]
        made: list[Opening] = [
            partial(self._by, each, last=each is recipes[-1]) for each in recipes
        ]
        return made if OWN_KERNELS in self._left_out else [self.authored, *made]

    def compiled(self) -> Proposal:
        made = self._first().result()
        summary = f"what torch.compile makes of it: {counted(made.kernels, 'kernel')}"
        return Proposal(candidate=made.candidate, proposer=_SEED, summary=summary)

    def _first(self) -> Future[Seed]:
        """Return the first one, or what was wrong with it. In a run that is resumed it is made
        again if others are still to come."""
        from kernel_smith.proposers.seed import make_seed

        with self._making:
            if self._made is None:
                made: Future[Seed] = Future()
                try:
                    made.set_result(make_seed(self._task, self._device, **self._manner))
                except BaseException as error:
                    made.set_exception(error)
                self._made = made
            return self._made

    def _first_if_right(self) -> Seed | None:
        first = self._first()
        return None if first.exception() else first.result()

    @property
    def _manner(self) -> _Manner:
        """On a GPU nobody is timed while the compiler tries kernels out, and whether they are right
        is left to the judge, so that the device is free the sooner."""
        if self._device == "cuda":
            return {"use_device": using_device, "compare": False}
        return {"use_device": contextlib.nullcontext, "compare": True}

    def authored(self) -> Proposal:
        """Comes after the other: it is a by-product."""
        made = self._first_if_right()
        candidate = made.authored_candidate if made else None
        if candidate is None:
            raise NothingToPropose("the compiler's kernels call no library that has a substitute")
        summary = "what torch.compile makes of it, with kernels of our own for its library calls"
        return Proposal(candidate=candidate, proposer=_SEED, summary=summary)

    def _by(self, recipe: Recipe, *, last: bool) -> Proposal:
        """Comes after the first, one at a time."""
        made = self._first_if_right()
        with self._in_turn:
            try:
                return self._compiled_by(recipe, made)
            finally:
                if last and self._maker is not None:
                    self._maker.close()

    def _compiled_by(self, recipe: Recipe, made: Seed | None) -> Proposal:
        from kernel_smith.proposers.seed import SeedMaker

        if made is not None and not recipe.is_worth_it(made):
            raise NothingToPropose(f"{recipe.name}: not worth its time here")
        self._maker = self._maker or SeedMaker(
            self._task, self._device, minutes=_RECIPE_MINUTES, **self._manner
        )
        try:
            seed = self._maker.make(recipe)
        except UserError as error:
            raise NothingToPropose(f"{recipe.name}: {error.what}") from None
        summary = f"what torch.compile makes of it {recipe.summary}"
        if recipe.rewrites:
            summary += f": {', '.join(seed.rewrites)}"
        return Proposal(candidate=seed.candidate, proposer=_SEED, summary=summary)

    def _after_race(self, place: int, others: Sequence[Opening]) -> Proposal:
        """Return what is to be judged, one after the other, and then the reasons why no more is."""
        with self._racing:
            if self._raced is None:
                self._raced = Outcome((), ("the race was broken off",))
                self._raced = self._hold_race(others)
        raced = self._raced
        if place < len(raced.proposals):
            return raced.proposals[place]
        said = raced.left[place - len(raced.proposals) :]
        seconds = raced.device_seconds if place == 0 else 0.0
        raise NothingToPropose(said[0] if said else _WAS_RACED, device_seconds=seconds)

    def _hold_race(self, others: Sequence[Opening]) -> Outcome:
        assert self._race is not None
        found, refused = [], []
        for make in others:
            try:
                found.append(make())
            except NothingToPropose as none:
                refused.append(str(none))
        first = self._first_if_right()
        if first is None:
            return Outcome(tuple(found), tuple(refused))
        raced = hold_race(self._task, first.candidate, found, self._race)
        return replace(raced, left=(*raced.left, *refused))
