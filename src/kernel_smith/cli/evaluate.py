"""`kernel-smith evaluate`: one candidate, judged."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from kernel_smith.cli import exit_codes
from kernel_smith.cli.candidates import read_candidate
from kernel_smith.cli.compile_only import compile_and_print
from kernel_smith.cli.options import (
    PATIENCE,
    BackendName,
    EngineAddress,
    Patience,
    PrecisionName,
    Quiet,
    TaskName,
)
from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.errors import BadInput
from kernel_smith.records import (
    Admission,
    Baseline,
    Candidate,
    Evaluation,
    Options,
    Sampling,
    Stage,
    Task,
)
from kernel_smith.records.prose import render
from kernel_smith.tasks import find_task

_INTERPRET = "--interpret"
_NCU = "--ncu"
_MCTRACER = "--mctracer"
_BASELINES: tuple[Baseline, ...] = get_args(Baseline)


def evaluate(
    task: TaskName,
    candidate: Annotated[
        Path | None,
        typer.Argument(help="A Python file with class ModelNew; default: the starting kernel."),
    ] = None,
    backend: BackendName = "cpp",
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What to compare with: {', '.join(_BASELINES)}. May be repeated.", metavar="NAME"
        ),
    ] = None,
    precision: PrecisionName = None,
    seeds: Annotated[int, typer.Option(min=1, help="Secret seeds per workload.")] = 3,
    half_width: Annotated[
        float, typer.Option(min=1e-4, help="Stop when half of the interval is as small as this.")
    ] = 0.01,
    max_seconds: Annotated[
        float, typer.Option(min=0.1, help="Longest measurement per workload.")
    ] = 4.0,
    patience: Patience = PATIENCE,
    cores: Annotated[
        str | None, typer.Option(help="Cores for timed work, e.g. 1,2; default: all but one.")
    ] = None,
    admit: Annotated[
        list[Admission] | None,
        typer.Option(
            metavar="FINDING", help="Accept a task in spite of this finding. May be repeated."
        ),
    ] = None,
    interpret: Annotated[
        bool,
        typer.Option(_INTERPRET, help="Interpret kernels for a GPU on the CPU, even with one."),
    ] = False,
    compile_only: Annotated[
        bool,
        typer.Option("--compile-only", help="Only compile kernels for a GPU; needs none."),
    ] = False,
    arch: Annotated[
        str | None,
        typer.Option(help="The GPU to compile for, with --compile-only, such as sm_90 or gfx90a."),
    ] = None,
    ncu: Annotated[
        bool,
        typer.Option(
            _NCU, help="Then have Nsight Compute watch it on the GPU, without the sandbox."
        ),
    ] = False,
    mctracer: Annotated[
        bool,
        typer.Option(_MCTRACER, help="The same with mcTracer, on a MetaX GPU."),
    ] = False,
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Another candidate to time it side by side with, e.g. its parent."
        ),
    ] = None,
    engine: EngineAddress = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again, ignore the cache.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Compile, check and time one candidate, and print the evidence.

    Kernels for a GPU run on it where there is one. Without one, or with --interpret, they are
    checked on small workloads in Triton's interpreter or by emulation, and not timed.

    Exits with 0 if the candidate is correct (with --compile-only: if it compiles), 1 if not, and 5
    if the machine was too noisy to say whether it is faster.
    """
    from kernel_smith.evaluation.backends import find_backend
    from kernel_smith.evaluation.engines import EvaluationCache, LocalEngine, open_engine

    found = find_task(task, precision)
    find_backend(backend)  # says so if there is none
    path = candidate or _starting_kernel(found, backend)
    program = read_candidate(path, backend)
    other = read_candidate(beside, backend) if beside is not None else None
    if interpret:
        _check_interpretable(backend, compile_only)
    if compile_only:
        compiles = compile_and_print(found, program, path, arch, json=json, quiet=quiet)
        raise typer.Exit(0 if compiles else exit_codes.NEGATIVE)
    if arch is not None:
        raise BadInput(f"--arch {arch} without --compile-only", hint="add --compile-only")
    watchers = [option for option, asked in ((_NCU, ncu), (_MCTRACER, mctracer)) if asked]
    if watchers and engine is not None:
        raise BadInput(
            f"{watchers[0]} with --engine {engine}: the GPU is elsewhere",
            hint=f"leave out {watchers[0]}, or evaluate on that machine",
        )
    options = Options(
        seeds=seeds,
        baselines=baselines_of(baseline),
        admit=tuple(admit or ()),
        interpret=interpret,
        sampling=Sampling(target=half_width, max_seconds=max_seconds),
        cores=_cores(cores),
    )
    cache = EvaluationCache()
    # Another machine's answer says nothing about this one.
    cached = None if fresh or engine else cache.get(found, program, options, other)
    if engine is not None:
        with progress(quiet) as report, open_engine(engine) as service:
            report(f"{engine} evaluates it")
            evaluation = service.submit(found, program, options, beside=other).result()
    elif cached is None:
        with progress(quiet) as report, LocalEngine(cache) as here:
            evaluation = here.evaluate(
                found,
                program,
                options,
                beside=other,
                fresh=True,
                progress=report,
                patience=patience,
            )
    else:
        evaluation = cached
    for watcher in watchers:
        evaluation = _watched(evaluation, found, program, watcher, quiet=quiet)
    if json:
        print_json(evaluation.model_dump(mode="json"))
    else:
        title = f"{task} <- {path} (precision {found.precision})"
        _print(evaluation, title, from_cache=cached is not None)
    raise typer.Exit(exit_codes.of_evaluation(evaluation))


def _watched(
    evaluation: Evaluation, task: Task, program: Candidate, watcher: str, *, quiet: bool
) -> Evaluation:
    """With what the tool of this option sees, on the workload that takes longest."""
    from kernel_smith.evaluation.mctracer import trace_candidate
    from kernel_smith.evaluation.nsight import profile_candidate

    if not evaluation.ok:
        return evaluation  # what the judge refuses is not run without a sandbox
    if evaluation.device is None or evaluation.timing is None:
        hint = "leave it out, or evaluate where there is one"
        raise BadInput(f"{watcher} without a GPU", hint=hint)
    longest = max(evaluation.timing.workloads, key=lambda timed: timed.candidate.p50)
    with progress(quiet) as report:
        if watcher == _NCU:
            report(f"Nsight Compute watches {longest.workload}")
            counted = profile_candidate(task, program, longest.workload)
            return evaluation.model_copy(update={"nsight": counted})
        report(f"mcTracer watches {longest.workload}")
        traced = trace_candidate(task, program, longest.workload)
        return evaluation.model_copy(update={"traced": traced})


def _print(evaluation: Evaluation, title: str, *, from_cache: bool) -> None:
    console.print(title, style="bold")
    console.print(render(evaluation))
    machine = evaluation.environment
    gpu = evaluation.device
    device = f"{gpu.name} (driver {gpu.driver}, CUDA {gpu.runtime}), " if gpu else ""
    console.print(
        f"Measured on {device}{machine.processor} ({machine.machine}), {machine.kernel}, "
        f"torch {machine.torch}, {machine.compiler}."
    )
    _print_next(evaluation, from_cache=from_cache)


def _print_next(evaluation: Evaluation, *, from_cache: bool) -> None:
    command = shlex.join(["kernel-smith", *sys.argv[1:]])
    if from_cache:
        print_next(f"{command} --fresh", f"this answer is from {evaluation.created_at:%F %T} UTC")
    elif evaluation.ok and evaluation.interpreted:
        _print_next_of_interpreted()
    elif evaluation.timing is not None and len(evaluation.timing.speedups) > 1:
        print_next(f"{command} --json", "the whole record")
    elif evaluation.stage is Stage.OK:
        print_next(f"{command} --baseline eager --baseline compile", "compare with torch.compile")
    else:
        print_next(command, "after the change")


def _print_next_of_interpreted() -> None:
    from kernel_smith.evaluation.sandbox.confine import devices

    arguments = [argument for argument in sys.argv[1:] if argument != _INTERPRET]
    command = shlex.join(["kernel-smith", *arguments])
    if _INTERPRET in sys.argv and devices.gpus().names:
        print_next(command, "how fast is it on the GPU?")
    else:
        print_next(f"{command} --compile-only", "does it compile for a GPU, and what does it use?")


def _starting_kernel(task: Task, backend: str) -> Path:
    if backend not in task.starts:
        raise BadInput(
            f"task {task.name} has no starting kernel for backend {backend}",
            hint="name a candidate: kernel-smith evaluate TASK CANDIDATE",
        )
    return Path(task.starts[backend])


def _check_interpretable(backend: str, compile_only: bool) -> None:
    from kernel_smith.evaluation.backends import find_backend

    if compile_only:
        raise BadInput(
            f"{_INTERPRET} with --compile-only: one runs the kernels, the other does not",
            hint="leave one of them out",
        )
    if not find_backend(backend).gpu:
        raise BadInput(
            f"{_INTERPRET} is for kernels for a GPU, not for backend {backend}",
            hint=f"name another --backend, or leave out {_INTERPRET}",
        )


def baselines_of(names: list[str] | None) -> tuple[Baseline, ...]:
    """Return the baselines of these names; eager alone where none is named."""
    chosen: dict[Baseline, None] = {}
    for name in names or ["eager"]:
        known = next((baseline for baseline in _BASELINES if baseline == name), None)
        if known is None:
            hint = f"choose from {', '.join(_BASELINES)}"
            raise BadInput(f"no baseline is called {name!r}", hint=hint)
        chosen[known] = None
    return tuple(chosen)


def _cores(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise BadInput(
            f"--cores {text}: expected core numbers separated by commas", hint="e.g. --cores 1,2,3"
        ) from None
