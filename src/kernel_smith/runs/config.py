"""All that decides how a run goes, from the little that somebody names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput, reason_of
from kernel_smith.records import Budget, Candidate, RunConfig, Task
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.method_file import declared_config, is_method_file, read_method
from kernel_smith.runs.presets import NEED_A_MODEL, PRESETS, PROTOCOLS, find_preset, settings_of
from kernel_smith.search.context import KNOWLEDGE, PLACES
from kernel_smith.search.methods import find_method

_SEED = "seed"  # who is named among the proposers, and writes a first program only
_MERGER = "merger"
_CHOOSER = "chooser"
_KNOWN = ("tuner", "mutator", _CHOOSER, _MERGER, "model", _SEED)


def configure(
    task: Task,
    backend: str,
    *,
    preset: str | None = None,
    method: str | None = None,
    proposers: Sequence[str] | None = None,
    policy: str | None = None,
    models: dict[str, Any] | None = None,
    rebudget: Callable[[Budget], Budget] | None = None,
    lanes: int = 1,
    seed: int = 0,
    untimed: bool = False,
    starts: Sequence[Candidate] | None = None,
    left_out: Sequence[str] = (),
    sweep: bool | None = None,
    winners: Sequence[Path] = (),
    counters: bool = False,
) -> RunConfig:
    """Return a preset's configuration with what is named here in place of its own.

    `models` are the settings of the model worker; naming some makes `model` the usual preset.
    `method` says how it is searched; one that has a preset of its name brings that along. It may be
    a TOML file that declares one.
    `policy`: what the chooser draws from, where it takes part: a file, NAME@BASE_URL, or a folder.
    `rebudget` makes a budget of the preset's. `starts`: None for the task's own. `left_out`:
    what of the compiler's programs the run does not begin with. `sweep`: let the tuner try values
    out, many at a time, before it proposes some; None: for the CPU alone.
    `winners`: stores, and folders of results, from which a model is shown what won on other tasks,
    beside the run's own store. `counters`: let a profiler look at the best, without the sandbox,
    when nothing better is found.
    """
    config = _preset(preset, method, backend, with_models=models is not None)
    weights = config.proposers if proposers is None else _weights(config, proposers)
    if len(task.workloads) < 2:  # there is nothing to take from one for the other
        weights = {name: weight for name, weight in weights.items() if name != _MERGER}
    if models is None and "model" in weights:
        raise BadInput(
            "a model is to be asked, but none is named",
            hint="add --model NAME@BASE_URL or --models FILE.toml, or ask others: "
            "--proposer tuner --proposer mutator",
        )
    if config.method in NEED_A_MODEL and "model" not in weights:
        raise BadInput(
            f"the method {config.method} asks a model, and none takes part",
            hint="add --model NAME@BASE_URL or --models FILE.toml, or choose another --method",
        )
    if policy is not None and _CHOOSER not in weights:
        raise BadInput(
            f"{policy} is named as the chooser's policy, and the chooser takes no part",
            hint="add --proposer chooser, and whoever else is to be asked",
        )
    config = config.model_copy(
        update={
            "proposers": weights,
            "budget": config.budget if rebudget is None else rebudget(config.budget),
            "evaluations_in_flight": lanes,
            "proposals_in_flight": max(config.proposals_in_flight, lanes),
            "seed": seed,
            "untimed": untimed,
            "counters": counters,
            "settings": _settings(config, models)
            | _chosen_by(config, policy)
            | ({} if sweep is None else {"tuner": {"sweep": sweep}})
            | winners_from(winners),
        }
    )
    if config.method in PROTOCOLS:
        return begin_with(_each_answer_counts(config), task, starts or (), with_seed=False)
    first = own_starts(task, backend) if starts is None else starts
    with_seed = proposers is None or _SEED in proposers
    return begin_with(config, task, first, with_seed=with_seed, left_out=left_out)


def _preset(
    preset: str | None, method: str | None, backend: str, *, with_models: bool
) -> RunConfig:
    if method is not None and is_method_file(method):
        declared = read_method(method)
        base = _preset(preset, declared["method"], backend, with_models=with_models)
        settings = base.settings | declared.get("settings", {})
        return declared_config(base, declared | {"settings": settings}, method)
    if method is not None:
        find_method(method)
    if method in PRESETS:
        return find_preset(method, backend)
    if preset in (None, "embedded"):
        preset = "model" if with_models else "embedded"
    config = find_preset(preset, backend)
    if method is None:
        return config
    update = {"method": method, "settings": settings_of(method, backend)}
    return config.model_copy(update=update)


def _settings(config: RunConfig, models: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The method's own, and how models are asked; what a user says of them counts."""
    if models is None:
        return {name: value for name, value in config.settings.items() if name != "model"}
    return config.settings | {"model": config.settings.get("model", {}) | models}


def _chosen_by(config: RunConfig, policy: str | None) -> dict[str, dict[str, Any]]:
    """A file or folder by where it is, since a run may be gone on with from another place."""
    if policy is None:
        return {}
    named = policy if "@http" in policy else str(Path(policy).absolute())
    return {_CHOOSER: config.settings.get(_CHOOSER, {}) | {"policy": named}}


def winners_from(places: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """Return the settings by which a run shows winners that lie in these places."""
    for place in places:
        if not place.exists():
            raise BadInput(
                f"{place}: there is nothing to take winners from",
                hint="name a store, or a folder of results with evaluation.json in it",
            )
    return {KNOWLEDGE: {PLACES: [str(place.absolute()) for place in places]}} if places else {}


def _each_answer_counts(config: RunConfig) -> RunConfig:
    """Nothing is asked twice, what failed is mended by a round like any other, and nobody is taught
    beforehand."""
    plain = {"max_repairs": 0, "asks_again": False, "give_up_after": None, "guides": False}
    model = config.settings.get("model", {}) | plain
    return config.model_copy(update={"settings": config.settings | {"model": model}})


def own_starts(task: Task, backend: str) -> list[Candidate]:
    """Return the starting kernel that a task brings along for a backend, if it does."""
    if backend not in task.starts:
        return []
    path = Path(task.starts[backend])
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: the starting kernel of task {task.name} cannot be read ({reason_of(error)})",
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
