"""Named ways to run, and the proposers that they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.records import Budget, Options, RunConfig, Sampling
from kernel_smith.search.plan_edit import PLAN_EDIT

# Long enough to rank, short enough to try many: whoever looks best is measured again. A wide
# interval is no reason to refuse a program here, because programs are ranked by its lower end.
_SAMPLING = Sampling(target=0.02, unstable_above=100, min_rounds=6, max_seconds=0.6)
_OPTIONS = Options(sampling=_SAMPLING, profile=False, time_twins=False)
# What is said about the winner: as `kernel-smith evaluate` would, against both.
_CONFIRMATION = Options(baselines=("eager", "compile"))


def embedded(backend: str) -> RunConfig:
    """No model: numbers are tuned, structure is mutated, the compiler's kernel joins in."""
    return RunConfig(
        backend=backend,
        proposers={"tuner": 1.0, "mutator": 1.0, "merger": 0.5},
        budget=Budget(evaluations=60, plateau=30),
        options=_OPTIONS,
        confirmation=_CONFIRMATION,
        islands=1,  # so few steps are better spent on one population
    )


def with_model(backend: str) -> RunConfig:
    """A model for structure, beside what needs none."""
    return RunConfig(
        backend=backend,
        proposers={"model": 1.5, "tuner": 1.0, "mutator": 0.7, "merger": 0.4},
        budget=Budget(evaluations=120, plateau=60),
        options=_OPTIONS,
        confirmation=_CONFIRMATION,
        proposals_in_flight=4,
    )


def paper(backend: str) -> RunConfig:
    """The protocol of the Kernel-Smith paper: a model writes the first program from the reference,
    and every one of its 40 answers is a round, whatever came of it. Cells by complexity and score.

    Its temperature of 0.6 and top-p of 0.95 are what models are asked with by default.
    """
    return _model_alone(backend, "paper", rounds=40).model_copy(
        update={"features": ("complexity", "score"), "elites_per_cell": 1}
    )


def best_of_n(backend: str) -> RunConfig:
    """As many answers as the paper's, each from the reference alone."""
    return _model_alone(backend, "best-of-n", rounds=40)


def refinement(backend: str) -> RunConfig:
    """As many answers as the paper's: the first from the reference, each later one a change of the
    best so far."""
    return _model_alone(backend, "refinement", rounds=40)


def one_shot(backend: str) -> RunConfig:
    """One answer, from the reference alone."""
    return _model_alone(backend, "one-shot", rounds=1)


def _model_alone(backend: str, method: str, rounds: int) -> RunConfig:
    return RunConfig(
        backend=backend,
        method=method,
        proposers={"model": 1.0},
        budget=Budget(rounds=rounds),
        options=_OPTIONS,
        confirmation=_CONFIRMATION,
    )


PRESETS: dict[str, Callable[[str], RunConfig]] = {
    "embedded": embedded,
    "model": with_model,
    "paper": paper,
    "refinement": refinement,
    "best-of-n": best_of_n,
    "one-shot": one_shot,
}
PROTOCOLS = ("paper", "refinement", "best-of-n", "one-shot")
"""Those by which models are compared: from the reference, and each answer stands for itself."""


NEED_A_MODEL = ("scientist", "roles")
"""Methods whose steps are thoughts in the first place."""


def settings_of(method: str, backend: str) -> dict[str, dict[str, Any]]:
    """Return what a method is given beside a preset's configuration."""
    if method == PLAN_EDIT:
        from kernel_smith.proposers.mutator import EDITS

        own = {edit.name: edit.sentence for edit in EDITS if backend in edit.backends}
        return {PLAN_EDIT: {"edits": own}}
    return {"model": {"max_repairs": 0}} if method == "roles" else {}  # it has its own debugger


def find_preset(name: str, backend: str) -> RunConfig:
    if name not in PRESETS:
        raise BadInput(f"no preset is called {name!r}", hint=f"choose one of: {', '.join(PRESETS)}")
    return PRESETS[name](backend)
