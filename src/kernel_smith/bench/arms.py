"""Arms: the ways to solve problems that a benchmark compares, all with the same budget.

An arm is a method of search (`one-shot`, `best-of-n`, `refinement`, `islands`, ...), a preset such
as `embedded`, or a folder of programs that are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kernel_smith.bench.suites import Problem
from kernel_smith.bench.told import check_folder, programs_for
from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, RunConfig, Task
from kernel_smith.records.bench import Arm
from kernel_smith.records.options import Baseline
from kernel_smith.runs.config import configure
from kernel_smith.runs.limits import limited
from kernel_smith.runs.presets import PRESETS
from kernel_smith.search.methods import find_method

EMBEDDED = "embedded"
TOLD = "told"


@dataclass(frozen=True)
class Protocol:
    """What all arms share."""

    backend: str
    limits: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Any] | None = None
    proposers: tuple[str, ...] | None = None
    baselines: tuple[Baseline, ...] = ("eager", "compile")
    lanes: int = 1
    seed: int = 0

    @property
    def is_limited(self) -> bool:
        return any(limit is not None for limit in self.limits.values())


class NoProgram(Exception):
    """The arm has nothing to begin with for a problem; the text says why."""


@dataclass(frozen=True)
class Plan:
    """One arm, and how a run of it is configured."""

    name: str
    protocol: Protocol
    method: str | None = None
    told: Path | None = None

    def config(self, problem: Problem) -> RunConfig:
        """Return the configuration of a run. Raises `NoProgram` where there is nothing to begin
        with."""
        assert problem.task is not None
        starts = None
        if self.told is not None:
            starts = programs_for(self.told, problem, self.protocol.backend)
            if not starts:
                raise NoProgram(f"{self.told} holds no program for it")
        try:
            return self._configured(problem.task, starts)
        except BadInput as error:
            raise NoProgram(error.what) from None

    def describe(self) -> Arm:
        """Return the arm as it stands beside the figures. Raises `BadInput` where it cannot be."""
        some_program = Candidate(backend=self.protocol.backend, source="")
        config = self._configured(Task(name="any", source=""), [some_program])
        models = config.settings.get("model", {}).get("models", ())
        return Arm(
            name=self.name,
            method=TOLD if self.told is not None else config.method,
            backend=config.backend,
            proposers=config.proposers,
            models=tuple(model["name"] for model in models),
            budget=config.budget,
            options=config.options,
            confirmation=config.confirmation,
            told=self.told is not None,
        )

    def _configured(self, task: Task, starts: Sequence[Candidate] | None) -> RunConfig:
        """With the winner held against all baselines in the end."""
        protocol, told = self.protocol, self.told is not None
        by_preset = self.method in PRESETS
        config = configure(
            task,
            protocol.backend,
            preset=self.method if by_preset else None,
            method=None if by_preset else self.method,
            proposers=() if told else protocol.proposers,
            models=None if told or self.method == EMBEDDED else protocol.models,
            rebudget=partial(limited, limits=protocol.limits),
            lanes=protocol.lanes,
            seed=protocol.seed,
            starts=starts,
        )
        final = config.confirmation.model_copy(update={"baselines": protocol.baselines})
        return config.model_copy(update={"confirmation": final})


def make_plans(methods: Sequence[str], told: Sequence[str], protocol: Protocol) -> list[Plan]:
    """Return the arms that somebody names; without any, the usual way to optimize.

    `told` names folders, each as FOLDER or NAME=FOLDER. Raises `BadInput` for what is not there,
    and for several arms that would not be limited in the same way.
    """
    plans = [_method(name, protocol) for name in dict.fromkeys(methods)]
    plans += [_told(word, protocol) for word in told]
    if not plans:
        plans = [_method("model" if protocol.models is not None else EMBEDDED, protocol)]
    asking = [plan for plan in plans if plan.told is None]
    if len(asking) > 1 and not protocol.is_limited:
        raise BadInput(
            f"{len(asking)} arms without a limit, expected the same budget for each",
            hint="name one, such as --evaluations 40 or --rounds 40",
        )
    names = [plan.name for plan in plans]
    if len(set(names)) < len(names):
        raise BadInput(
            f"two arms are called {max(names, key=names.count)!r}",
            hint="give folders names of their own: --told NAME=FOLDER",
        )
    for plan in plans:
        plan.describe()
    return plans


def _method(name: str, protocol: Protocol) -> Plan:
    if name not in PRESETS:
        find_method(name)
    return Plan(name, protocol, name)


def _told(word: str, protocol: Protocol) -> Plan:
    name, equals, folder = word.partition("=")
    path = Path(folder if equals else word)
    check_folder(path)
    return Plan(name if equals else TOLD, protocol, told=path)


def differs(begun: RunConfig, config: RunConfig) -> str:
    """Return what a run in the store was begun with that is not as it would be now; empty: all
    is."""
    for name in ("backend", "method", "proposers", "budget", "options", "confirmation"):
        if getattr(begun, name) != getattr(config, name):
            return name
    for setting, name in (("model", "model"), ("start", "program to begin with")):
        if begun.settings.get(setting) != config.settings.get(setting):
            return name
    return ""
