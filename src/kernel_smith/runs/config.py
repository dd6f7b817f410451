"""All that decides how a run goes, from the little that somebody names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.records import Budget, Candidate, RunConfig, Task
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.presets import find_preset

_SEED = "seed"  # who is named among the proposers, and writes a first program only
_KNOWN = ("tuner", "mutator", "model", _SEED)


def configure(
    task: Task,
    backend: str,
    *,
    preset: str = "embedded",
    proposers: Sequence[str] | None = None,
    models: dict[str, Any] | None = None,
    rebudget: Callable[[Budget], Budget] | None = None,
    lanes: int = 1,
    seed: int = 0,
    untimed: bool = False,
    starts: Sequence[Candidate] | None = None,
) -> RunConfig:
    """Return a preset's configuration with what is named here in place of its own.

    `models` are the settings of the model worker; naming some makes `model` the usual preset.
    `rebudget` makes a budget of the preset's. `starts`: None for the task's own.
    """
    if models is not None and preset == "embedded":
        preset = "model"
    config = find_preset(preset, backend)
    weights = config.proposers if proposers is None else _weights(config, proposers)
    if models is None and "model" in weights:
        raise BadInput(
            "a model is to be asked, but none is named",
            hint="add --model NAME@BASE_URL or --models FILE.toml, or ask others: "
            "--proposer tuner --proposer mutator",
        )
    config = config.model_copy(
        update={
            "proposers": weights,
            "budget": config.budget if rebudget is None else rebudget(config.budget),
            "evaluations_in_flight": lanes,
            "proposals_in_flight": max(config.proposals_in_flight, lanes),
            "seed": seed,
            "untimed": untimed,
            "settings": {} if models is None else {"model": models},
        }
    )
    first = own_starts(task, backend) if starts is None else starts
    with_seed = proposers is None or _SEED in proposers
    return begin_with(config, task, first, with_seed=with_seed)


def own_starts(task: Task, backend: str) -> list[Candidate]:
    """The starting kernel that a task brings along for a backend, if it does."""
    if backend not in task.starts:
        return []
    path = Path(task.starts[backend])
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: the starting kernel of task {task.name} cannot be read ({error})",
            hint="mend the file, or name another program: --start FILE",
        ) from None
    return [Candidate(backend=backend, source=source, name=path.name)]


def _weights(config: RunConfig, proposers: Sequence[str]) -> dict[str, float]:
    unknown = sorted(set(proposers) - set(_KNOWN))
    if unknown:
        raise BadInput(
            f"no proposer is called {unknown[0]!r}", hint=f"choose: {', '.join(sorted(_KNOWN))}"
        )
    return {name: config.proposers.get(name, 1.0) for name in proposers if name != _SEED}
