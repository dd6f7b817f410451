"""What a run begins with: programs that are there, and what the framework's compiler writes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from kernel_smith.errors import BadInput, UserError
from kernel_smith.evaluation.judge.platform.device_lock import using_device
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.records import Candidate, Proposal, RunConfig, Task
from kernel_smith.records.counts import counted
from kernel_smith.runs.loop import Opener
from kernel_smith.runs.state import RunState

if TYPE_CHECKING:
    from kernel_smith.proposers.seed import Recipe, Seed, SeedMaker

_START, _SEED = "start", "seed"
_RECIPE_MINUTES = 1.5  # each: meanwhile nobody can be timed
_DEVICE_OF_SEED = {"cpp": "cpu", "triton": "cuda"}  # what the framework's compiler writes


def begin_with(
    config: RunConfig,
    task: Task,
    starts: Sequence[Candidate],
    *,
    with_seed: bool,
    rewrites: bool = True,
) -> RunConfig:
    """Keep in the configuration what a run begins with: the programs that are there, and what the
    framework's compiler makes of the task, where it writes for this backend, also after `rewrites`
    of its graph. So a run that is resumed knows it, too."""
    with_seed = with_seed and config.backend in _DEVICE_OF_SEED
    if not starts and not with_seed and "model" not in config.proposers:
        raise BadInput(
            f"task {task.name} has no starting kernel for backend {config.backend}",
            hint="name a program to start from: --start FILE, or have one written: --proposer model"
            + (" or --proposer seed" if config.backend in _DEVICE_OF_SEED else ""),
        )
    programs = [candidate.model_dump(mode="json") for candidate in starts]
    seed = {"wanted": with_seed, "rewrites": rewrites}
    settings = config.settings | {_START: {"programs": programs}, _SEED: seed}
    return config.model_copy(update={"settings": settings})


def first_programs(state: RunState) -> list[Opener]:
    """What the run is to begin with and has not begun with yet."""

    def opening(candidate: Candidate) -> Callable[[], Proposal]:
        summary = f"the program that the run starts from: {candidate.name}"
        return lambda: Proposal(candidate=candidate, proposer=_START, summary=summary)

    settings = state.config.settings
    # A library's run may have begun otherwise.
    programs = settings.get(_START, {}).get("programs", ())
    starts = [Candidate.model_validate(each) for each in programs]
    openers: list[Opener] = [
        (_START, opening(candidate)) for candidate in starts if not state.is_known(candidate)
    ]
    done = state.by_proposer[_SEED] + state.dropped[_SEED]
    wanted = settings.get(_SEED, {})
    if wanted.get("wanted") and not done:
        seeds = _Seeds(state.task, _DEVICE_OF_SEED[state.config.backend])
        rewrites = wanted.get("rewrites", True)
        openers += [(_SEED, opener) for opener in seeds.openers(rewrites=rewrites)]
    return openers


class _Seeds:
    """What the framework's compiler writes, the same without its library calls, and what it writes
    by other recipes. A run waits for the first of them alone."""

    def __init__(self, task: Task, device: str) -> None:
        self._task, self._device = task, device
        self._made: Future[Seed] = Future()
        self._in_turn = threading.Lock()
        self._maker: SeedMaker | None = None

    def openers(self, *, rewrites: bool) -> list[Callable[[], Proposal]]:
        """In the order in which they are worth having."""
        from kernel_smith.proposers.seed.recipes import DEFAULT, RECIPES

        others = [
            recipe
            for recipe in RECIPES.values()
            if recipe is not DEFAULT
            and (self._device == "cuda" or recipe.anywhere)
            and (rewrites or not recipe.rewrites)
        ]
        recipes = [partial(self._by, each, last=each is others[-1]) for each in others]
        return [self.compiled, self.authored, *recipes]

    def compiled(self) -> Proposal:
        from kernel_smith.proposers.seed import make_seed

        try:
            made = make_seed(self._task, self._device)
        except BaseException as error:
            self._made.set_exception(error)
            raise
        self._made.set_result(made)
        summary = f"what torch.compile makes of it: {counted(made.kernels, 'kernel')}"
        return Proposal(candidate=made.candidate, proposer=_SEED, summary=summary)

    def authored(self) -> Proposal:
        """Comes after the other: it is a by-product."""
        made = None if self._made.exception() else self._made.result()
        candidate = made.authored_candidate if made else None
        if candidate is None:
            raise NothingToPropose("the compiler's kernels call no library that has a substitute")
        summary = "what torch.compile makes of it, with kernels of our own for its library calls"
        return Proposal(candidate=candidate, proposer=_SEED, summary=summary)

    def _by(self, recipe: Recipe, *, last: bool) -> Proposal:
        """Comes after the first, one at a time, and never while somebody is timed."""
        made = None if self._made.exception() else self._made.result()
        with self._in_turn:
            try:
                return self._compiled_by(recipe, made)
            finally:
                if last and self._maker is not None:
                    self._maker.close()

    def _compiled_by(self, recipe: Recipe, made: Seed | None) -> Proposal:
        from kernel_smith.proposers.seed import SeedMaker

        if made is not None and not recipe.may_differ(made):
            raise NothingToPropose(f"{recipe.name}: there is nothing that it would change")
        self._maker = self._maker or SeedMaker(self._task, self._device, minutes=_RECIPE_MINUTES)
        on_gpu = self._device == "cuda"
        with using_device() if on_gpu else contextlib.nullcontext():
            try:
                seed = self._maker.make(recipe)
            except UserError as error:
                raise NothingToPropose(f"{recipe.name}: {error.what}") from None
        summary = f"what torch.compile makes of it {recipe.summary}"
        if recipe.rewrites:
            summary += f": {', '.join(seed.rewrites)}"
        return Proposal(candidate=seed.candidate, proposer=_SEED, summary=summary)
