"""The library's front door: `import kernel_smith as ks; found = ks.optimize(module, inputs)`."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_smith.cli.evolution_view import audience
from kernel_smith.cli.output import progress as progress_line
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.engines import open_engine
from kernel_smith.proposers.model import check_models, make_settings, parse_model, read_settings
from kernel_smith.proposers.seed import PATIENCE_MINUTES, Seed, make_seed
from kernel_smith.records import Baseline, Budget, Candidate, Evaluation, Event, Options, Task
from kernel_smith.runs.config import configure
from kernel_smith.runs.limits import limited
from kernel_smith.runs.run import Run
from kernel_smith.runs.state import RunState
from kernel_smith.runs.workers import adviser_of
from kernel_smith.shipping.found import Optimized
from kernel_smith.store import Store, default_path
from kernel_smith.tasks import find_task, with_precision

if TYPE_CHECKING:
    import torch

    from kernel_smith.shipping.runtime.replacement import Replacement

    Target = str | Path | Task | torch.nn.Module
    """A built-in task's name, a task file, a task, or a module of the program that runs."""

__all__ = ["Optimized", "evaluate", "load", "optimize", "seed"]


def optimize(
    target: Target,
    example_inputs: Any = None,
    *,
    backend: str | None = None,
    minutes: float | None = None,
    evaluations: int | None = None,
    models: str | Path | Sequence[str] | None = None,
    precision: str | None = None,
    starts: Sequence[str] = (),
    preset: str | None = None,
    method: str | None = None,
    proposers: Sequence[str] | None = None,
    policy: str | None = None,
    winners: Sequence[str | Path] = (),
    budget: Budget | None = None,
    lanes: int = 1,
    engine: str | None = None,
    store: str | Path | None = None,
    progress: bool = True,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Optimized:
    """Evolve a faster kernel for a task or for a live module.

    A module becomes a task by itself; `example_inputs` are the arguments of a call, a tuple, or a
    list of such calls, whose sizes become workloads. `backend` is `cpp` unless the module is on a
    GPU, then `triton`. `minutes` and `evaluations` limit the search, or `budget` in all detail.
    `models` are those to ask: a TOML file, or NAME[@BASE_URL], one or several.

    `starts` are texts to start from, in place of the task's own. `preset`, `method`, `proposers`,
    `policy`, `precision` and `winners` are those of `kernel-smith optimize`. `engine` is the
    address of whoever evaluates; None: this machine, with as many candidates at once as `lanes`.
    Every step is kept in `store`. Raises `BadInput` if no program to start from is accepted.
    """
    task = with_precision(_task(target, example_inputs), precision)
    chosen = backend or _backend_for(target)
    find_backend(chosen)
    _check_kinds(budget, lanes, starts=starts, proposers=proposers)
    if budget is not None and (minutes is not None or evaluations is not None):
        raise BadInput("budget beside minutes or evaluations", hint="say all of it in the budget")
    limits = {
        "seconds": None if minutes is None else 60 * _positive("minutes", minutes),
        "evaluations": evaluations,
    }
    config = configure(
        task,
        chosen,
        preset=preset,
        method=method,
        proposers=proposers,
        policy=policy,
        models=_model_settings(models),
        rebudget=partial(limited, limits=limits) if budget is None else lambda _: budget,
        lanes=lanes,
        winners=[Path(place) for place in winners],
        starts=[Candidate(backend=chosen, source=text, name="start.py") for text in starts] or None,
    )
    if "model" in config.proposers:
        check_models(make_settings(config.settings["model"]))
    if "chooser" in config.proposers:
        with contextlib.closing(adviser_of(config)) as adviser:
            adviser.check()
    with (
        Store.open(Path(store or default_path()), create=True) as book,
        Run.start(book, task, config) as run,
        audience(as_json=False, quiet=not progress) as watch,
        open_engine(engine, lanes) as judges,
    ):

        def see(event: Event, state: Any) -> None:
            watch(event, state)
            on_event(event)

        why = run.search(judges, see)
        _warn_of_models(run.state)
        if run.state.best is None:
            reasons = [f"; {name}: {drop}" for name, drop in run.state.last_drop.items()]
            tried = f"kernel-smith runs show {run.state.run} says what was tried"
            raise BadInput(
                f"run {run.state.run}: {why}{''.join(reasons)}",
                hint=tried if run.state.steps else f"give it more, such as minutes=10; {tried}",
            )
        return Optimized.of(run.state, why, _module_of(target))


def evaluate(
    target: Target,
    candidate: str | Path | Candidate,
    example_inputs: Any = None,
    *,
    backend: str | None = None,
    baselines: Sequence[Baseline] = ("eager",),
    precision: str | None = None,
    engine: str | None = None,
    progress: bool = True,
) -> Evaluation:
    """Compile, check and time one candidate: a file, the text of one, or a `Candidate`."""
    task = with_precision(_task(target, example_inputs), precision)
    program = _candidate(candidate, backend or _backend_for(target))
    options = Options(baselines=tuple(baselines))
    with progress_line(not progress) as report, open_engine(engine) as judges:
        report(f"evaluating {program.name}")
        return judges.submit(task, program, options).result()


def seed(
    target: Target,
    example_inputs: Any = None,
    *,
    device: str = "cpu",
    precision: str | None = None,
    minutes: float = PATIENCE_MINUTES,
    progress: bool = True,
) -> Seed:
    """Write what torch.compile makes of a task or module as a candidate; `.source` is its text."""
    if device not in ("cpu", "cuda"):
        raise BadInput(f"no device is called {device!r}", hint="choose cpu or cuda")
    task = with_precision(_task(target, example_inputs), precision)
    with progress_line(not progress) as report:
        return make_seed(task, device, None, report, _positive("minutes", minutes))


def load(path: str | Path) -> Replacement:
    """What `Optimized.save` has written: `.module()`, `.patch(model)` and `.unpatch(model)`."""
    from kernel_smith.shipping.folder import load as load_folder

    return load_folder(Path(path))


def _warn_of_models(state: RunState) -> None:
    """A kernel may have been found by others, so this is no error."""
    if state.gave_nothing("model"):
        warnings.warn(
            f"run {state.run}: no model gave a new program; at last: {state.last_drop['model']}",
            stacklevel=3,
        )


def _task(target: Target, example_inputs: Any) -> Task:
    if (module := _module_of(target)) is not None:
        from kernel_smith.shipping.live import live_task, read_calls

        return live_task(module, read_calls(module, example_inputs))
    if isinstance(target, type):
        raise BadInput(
            f"{target.__qualname__} is a class, expected a module, a task or a path",
            hint=f"pass an instance, {target.__name__}(...), and example_inputs",
        )
    if example_inputs is not None:
        raise BadInput(
            "example_inputs with a task, which makes its own inputs", hint="leave them out"
        )
    if isinstance(target, Task):
        return target
    if isinstance(target, str | Path):
        return find_task(str(target))
    raise BadInput(
        f"{type(target).__qualname__} cannot be optimized",
        hint="pass a torch.nn.Module, a task's name, the path of a task file, or a Task",
    )


def _module_of(target: object) -> torch.nn.Module | None:
    loaded = sys.modules.get("torch")  # whoever has a module has torch; others need not wait
    return target if loaded is not None and isinstance(target, loaded.nn.Module) else None


def _backend_for(target: object) -> str:
    module = _module_of(target)
    on_gpu = module is not None and any(p.is_cuda for p in module.parameters())
    return "triton" if on_gpu else "cpp"


def _candidate(given: str | Path | Candidate, backend: str) -> Candidate:
    if isinstance(given, Candidate):
        return given
    if not isinstance(given, str | Path):
        what = f"candidate is a {type(given).__qualname__}, expected a path or a text"
        raise BadInput(what, hint="Path('kernel.py'), or what is in such a file")
    if isinstance(given, Path) or "\n" not in given:
        from kernel_smith.cli.candidates import read_candidate

        return read_candidate(Path(given), backend)
    return Candidate(backend=backend, source=given)


def _positive(name: str, value: float) -> float:
    if not isinstance(value, int | float) or not value > 0:
        raise BadInput(f"{name} is {value!r}, expected a positive number", hint=f"{name}=10")
    return value


def _check_kinds(budget: object, lanes: object, **lists: Sequence[object] | None) -> None:
    """Raise `BadInput` for what would fail later, and without a word about the argument."""
    if not isinstance(budget, Budget | None):
        raise BadInput(
            f"budget is {budget!r}, expected a Budget",
            hint="evaluations=20, or budget=kernel_smith.records.Budget(evaluations=20)",
        )
    if not isinstance(lanes, int) or lanes < 1:
        raise BadInput(f"lanes is {lanes!r}, expected a positive integer", hint="lanes=1")
    for name, value in lists.items():
        if isinstance(value, str):
            raise BadInput(f"{name} is a text, expected a list of texts", hint=f"{name}=[...]")
        for each in value or ():
            if not isinstance(each, str):
                what = f"{name} has {each!r} in it, expected texts"
                raise BadInput(what, hint=f"{name}=[...]; of a file, path.read_text()")


def _model_settings(models: str | Path | Sequence[str] | None) -> dict[str, Any] | None:
    if models is None:
        return None
    if isinstance(models, Path) or (isinstance(models, str) and models.endswith(".toml")):
        return read_settings(Path(models)).model_dump(mode="json")
    named = [models] if isinstance(models, str) else models
    parsed = [parse_model(text).model_dump(mode="json") for text in named]
    return make_settings({"models": parsed}).model_dump(mode="json")
