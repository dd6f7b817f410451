"""`kernel-smith optimize` and `resume`: from a working kernel to a faster, verified one."""

from __future__ import annotations

import contextlib
import shlex
import signal
from functools import partial
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernel_smith.cli.candidates import check_writable, make_folder, read_candidate, write_candidate
from kernel_smith.cli.confirmation_text import (
    advice,
    confirmation_in_words,
    describe_confirmation,
)
from kernel_smith.cli.exit_codes import NEGATIVE, of_run
from kernel_smith.cli.model_options import (
    check_chooser,
    check_models,
    model_settings,
    models_that_failed,
)
from kernel_smith.cli.options import (
    PATIENCE,
    BackendName,
    EngineAddress,
    Lanes,
    ModelNames,
    ModelsFile,
    Patience,
    PolicyName,
    PrecisionName,
    ProposerNames,
    Quiet,
    RunName,
    StoreFile,
    TaskName,
)
from kernel_smith.cli.output import command_of, console, print_next
from kernel_smith.cli.task_words import words_of
from kernel_smith.cli.variants import default_folder, is_untimed, show_variants
from kernel_smith.errors import BadInput, Interrupted
from kernel_smith.records import RunConfig, RunStarted, Task

if TYPE_CHECKING:
    from kernel_smith.runs.run import Run

_STOPPING = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what schedulers and containers send


def optimize(
    task: TaskName,
    backend: BackendName = "cpp",
    start: Annotated[
        list[Path] | None,
        typer.Option(
            help="A program to start from; default: the task's own. May be repeated.",
            metavar="FILE",
        ),
    ] = None,
    precision: PrecisionName = None,
    preset: Annotated[
        str | None, typer.Option(help="Who works, and how long: embedded, model, paper, ...")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How it is searched: islands, uct, contrast, plan-edit, queue, scientist, roles, "
            "greedy, refinement, best-of-n, one-shot, paper, or FILE.toml."
        ),
    ] = None,
    evaluations: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many answers, of use or not.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.05,
            help="Stop after so long; the last minute, or fifth, is for confirming the best.",
        ),
    ] = None,
    device_minutes: Annotated[
        float | None, typer.Option(min=0.05, help="Stop after so long spent evaluating.")
    ] = None,
    target: Annotated[float | None, typer.Option(help="Stop at this speedup.")] = None,
    plateau: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many without a new best.")
    ] = None,
    proposer: ProposerNames = None,
    policy: PolicyName = None,
    model: ModelNames = None,
    models: ModelsFile = None,
    winners: Annotated[
        list[Path] | None,
        typer.Option(
            "--winners",
            metavar="PATH",
            help="A store or a folder of results, whose winners on other tasks a model is shown, "
            "beside those of the run's own store; may be repeated.",
        ),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help="Let Nsight Compute look at the best kernel after 10 evaluations without a better "
            "one. It runs without the sandbox then.",
        ),
    ] = False,
    tokens: Annotated[int | None, typer.Option(min=1, help="Stop after so many tokens.")] = None,
    dollars: Annotated[float | None, typer.Option(min=0, help="Stop at this cost.")] = None,
    lanes: Lanes = 1,
    untimed: Annotated[
        bool, typer.Option("--untimed", help="Without the GPU: collect correct programs.")
    ] = False,
    rewrites: Annotated[
        bool,
        typer.Option(
            "--rewrites/--no-rewrites",
            help="Begin also with rewrites of the reference that are exact in real arithmetic.",
        ),
    ] = True,
    sweep: Annotated[
        bool | None,
        typer.Option(
            "--sweep/--no-sweep",
            help="Let the tuner try many numbers out at a time before it proposes the best; by "
            "default for the CPU alone.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="For whatever is drawn at random.")] = 0,
    patience: Patience = PATIENCE,
    engine: EngineAddress = None,
    store: StoreFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The winning kernel's file; with --untimed, a folder."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Evolve a faster kernel for a task, and keep every step.

    In the end the best kernel is measured at full length, against eager PyTorch and torch.compile.
    Exits with 0 if that shows that it is significantly faster than both, 1 if not, and 5 if the
    machine was too noisy to say; where nothing can be timed (--untimed), with 0 if a change of the
    first program is correct.
    """
    from kernel_smith.evaluation.backends import find_backend
    from kernel_smith.inline.toolchain import find_toolchain
    from kernel_smith.runs.config import configure
    from kernel_smith.runs.first_programs import RACE, REWRITES
    from kernel_smith.runs.limits import limited
    from kernel_smith.runs.run import Run
    from kernel_smith.store import Store, default_path
    from kernel_smith.tasks import find_task

    found = find_task(task, precision)
    find_backend(backend)
    if backend == "cpp" and engine is None:
        find_toolchain(backend)  # without which a run would begin, and nothing in it be accepted
    _check_output(output, found, backend, untimed=untimed)
    limits: dict[str, Any] = {"evaluations": evaluations, "target": target, "plateau": plateau}
    limits |= {"rounds": rounds, "tokens": tokens, "dollars": dollars}
    limits["seconds"] = None if minutes is None else 60 * minutes
    limits["device_seconds"] = None if device_minutes is None else 60 * device_minutes
    first = {REWRITES: rewrites, RACE: sweep}
    config = configure(
        found,
        backend,
        preset=preset,
        method=method,
        proposers=proposer,
        policy=policy,
        models=model_settings(model, models),
        rebudget=partial(limited, limits=limits),
        lanes=lanes,
        seed=seed,
        untimed=untimed,
        starts=[read_candidate(path, backend) for path in start] if start else None,
        left_out=[name for name, wanted in first.items() if wanted is False],
        sweep=sweep,
        winners=winners or (),
        counters=counters,
    )
    capped = config.budget.dollars is not None
    check_models(_models_of(config), capped=capped, quiet=quiet or json)
    check_chooser(config, quiet=quiet or json)
    with (
        Store.open(store or default_path(), create=True) as book,
        Run.start(book, found, config) as run,
    ):
        _evolve(run, store, output, engine, patience, as_json=json, quiet=quiet)


def resume(
    run: RunName,
    evaluations: Annotated[int | None, typer.Option(min=1, help="The new limit, in all.")] = None,
    minutes: Annotated[float | None, typer.Option(min=0.05, help="The new limit, in all.")] = None,
    target: Annotated[float | None, typer.Option(help="Stop at this speedup.")] = None,
    device_minutes: Annotated[
        float | None, typer.Option(min=0.05, help="The new limit, in all.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="The new limit, in all.")] = None,
    dollars: Annotated[float | None, typer.Option(min=0, help="The new limit, in all.")] = None,
    patience: Patience = PATIENCE,
    engine: EngineAddress = None,
    store: StoreFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the winning kernel.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was interrupted, or has more to spend.

    Exits like `optimize`. The run keeps its own copy of the task.
    """
    from kernel_smith.runs.limits import limited
    from kernel_smith.runs.run import Run
    from kernel_smith.store import Store, default_path

    limits = {"evaluations": evaluations, "seconds": minutes and 60 * minutes}
    limits |= {"device_seconds": device_minutes and 60 * device_minutes}
    limits |= {"tokens": tokens, "dollars": dollars, "target": target}
    rebudget = partial(limited, limits=limits) if any(limits.values()) else None
    with Store.open(store or default_path()) as book, contextlib.ExitStack() as stack:
        name = book.find_run(run)
        _, begun = next(book.events(name))
        if isinstance(begun, RunStarted):
            check_models(_models_of(begun.config), quiet=quiet or json)
            check_chooser(begun.config, quiet=quiet or json)
        opened = stack.enter_context(Run.resume(book, name, rebudget))
        state = opened.state
        _check_output(output, state.task, state.config.backend, untimed=state.config.untimed)
        _evolve(opened, store, output, engine, patience, as_json=json, quiet=quiet)


def _models_of(config: RunConfig) -> dict[str, Any] | None:
    """Return the settings of the models that a run would ask; None if it asks none."""
    return config.settings.get("model") if "model" in config.proposers else None


def _evolve(
    run: Run,
    store: Path | None,
    output: Path | None,
    engine: str | None,
    patience: float,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    from kernel_smith.runs.loop import EXHAUSTED
    from kernel_smith.search.offered import MethodFailed

    again = command_of("resume", run.state.run, store=store)
    try:
        _run_loop(run, engine, patience, as_json=as_json, quiet=quiet)
    except (KeyboardInterrupt, MethodFailed) as stop:
        if not is_untimed(run.state):
            _show_best(run, store, output, as_json=as_json)
        if isinstance(stop, MethodFailed):
            hint = f"every step is kept; correct the method, then go on: {again}"
            raise BadInput(stop.what, hint=hint) from None
        raise Interrupted("interrupted; every step is kept", hint=f"go on: {again}") from None
    if is_untimed(run.state):
        folder = output or default_folder(run.state.task, run.state.config.backend)
        changed = show_variants(run.state, folder, as_json=as_json)
        if not as_json:
            print_next(command_of("runs", "show", run.state.run, store=store), "what was tried")
        models_that_failed(run.state, again)
        raise typer.Exit(0 if changed else NEGATIVE)
    if not _show_best(run, store, output, as_json=as_json):
        if not as_json:
            _explain_nothing(run)
            start = shlex.join(["kernel-smith", "optimize", *words_of(run.state.task)])
            own = "begin with a kernel of yours; or add --model, and have one write the first"
            print_next(f"{start} --backend {run.state.config.backend} --start FILE", own)
            print_next(command_of("runs", "show", run.state.run, store=store), "what was tried")
    elif not as_json and run.state.ended == EXHAUSTED:
        ask = command_of("ask", run.state.run, store=store)
        print_next(ask, "resuming would try nothing new: change it yourself, or name a --model")
    elif not as_json:
        print_next(f"{again} --evaluations {_more(run)}", "go on")
    models_that_failed(run.state, f"{again} --evaluations {_more(run)}")
    raise typer.Exit(of_run(run.state))


def _run_loop(
    run: Run, address: str | None, patience: float, *, as_json: bool, quiet: bool
) -> None:
    """Raises `KeyboardInterrupt` if the run was stopped: what is under way is given up then, and
    done again when the run is resumed."""
    from kernel_smith.cli.evolution_view import audience
    from kernel_smith.evaluation.engines import open_engine

    with (
        audience(as_json=as_json, quiet=quiet) as watch,
        open_engine(address, run.state.config.evaluations_in_flight, patience) as engine,
    ):
        before = {each: signal.signal(each, lambda *_: _stop(run)) for each in _STOPPING}
        try:
            run.search(engine, watch)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
        if run.stopping:
            raise KeyboardInterrupt


def _stop(run: Run) -> None:
    if run.stopping:
        raise KeyboardInterrupt
    run.stop()


def _show_best(run: Run, store: Path | None, output: Path | None, *, as_json: bool) -> bool:
    """Return the evidence, the winning kernel on disk, and what to do with it; False if there is
    none."""
    from kernel_smith.records.prose import render

    state = run.state
    best = state.best
    if best is None:
        return False
    path = output or _default_output(state.task)
    write_candidate(path, best.candidate.source)
    if as_json:
        # One line, like the events before it.
        found = {"run": state.run, "best": str(path), "score": best.score}
        print(dumps(found | describe_confirmation(state)), flush=True)
    else:
        console.print(render(state.confirmation or best.evaluation))
        console.print(confirmation_in_words(state))
        console.print(f"The kernel is in {path}.")
        said = advice(state, path)
        colour = "green" if said.startswith("Use it") else "yellow"
        console.print(said, style=f"bold {colour}")
        name, *options = words_of(state.task)
        command = ["kernel-smith", "evaluate", name, str(path), *options]
        command += ["--backend", state.config.backend, "--fresh"]
        command += ["--baseline", "eager", "--baseline", "compile"]
        print_next(shlex.join(command), "judge it again, in the same way")
        print_next(command_of("report", state.run, store=store), "see how it came about")
    return True


def _check_output(output: Path | None, task: Task, backend: str, *, untimed: bool) -> None:
    """Before all of the work."""
    if untimed:
        make_folder(output or default_folder(task, backend))
    else:
        check_writable(output or _default_output(task))


def _default_output(task: Task) -> Path:
    return Path(f"{task.name}_best.py")


def _explain_nothing(run: Run) -> None:
    from kernel_smith.records.prose import render

    for step in run.state.steps.values():
        if step.evaluation is not None:
            console.print(f"{step.proposal.candidate.name}:")
            console.print(render(step.evaluation))
            return


def _more(run: Run) -> int:
    return 2 * max(run.state.funnel["evaluated"], 10)
