"""`kernel-smith ship`: from the winner of a run to what a maintainer merges.

`ship RUN` writes it, `ship verify RUN` holds it against the function that a project has today.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli.default_command import DefaultCommand
from kernel_smith.cli.options import EngineAddress, Quiet, RunName, StoreFile
from kernel_smith.cli.output import command_of, console, print_json, print_next, progress
from kernel_smith.errors import BadInput, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_smith.records import Evaluation
    from kernel_smith.shipping.found import Optimized
    from kernel_smith.store import StepFacts

_WRITE = "write"


class _Ship(DefaultCommand):
    default = _WRITE


app = typer.Typer(
    cls=_Ship,
    no_args_is_help=True,
    help="Write a run's best kernel for a maintainer. `ship RUN` is short for `ship write RUN`.",
)

ProjectName = Annotated[
    str | None,
    typer.Option(help="The project: sglang, lmdeploy, vllm or flash-linear-attention."),
]


@app.command(_WRITE)
def ship(
    run: RunName,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder, or with --project the patch, to write."),
    ],
    name: Annotated[
        str | None, typer.Option(help="The package's or module's name; default: the task's.")
    ] = None,
    project: ProjectName = None,
    checkout: Annotated[
        Path | None, typer.Option(help="Where the project is checked out; it is only read.")
    ] = None,
    store: StoreFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write the best kernel of a run as a package, or as a patch.

    A package by itself, or a patch for a project's checkout. Beside it: its tests against the
    reference, a benchmark with the judge's figures, and the text of a pull request. Exits with 0 if
    the kernel was confirmed to be faster, and with 1 if not.
    """
    if (project is None) != (checkout is None):
        raise BadInput(
            "--project and --checkout go together",
            hint="--project sglang --checkout PATH, or neither of them for a package",
        )
    found, lineage = _winner(run, store)
    title = re.sub(r"\W", "_", found.task.name)
    if project is not None and checkout is not None:
        written, following, why = _write_patch(
            found,
            lineage,
            output,
            name or title,
            project,
            Path(os.path.expanduser(checkout)).absolute(),
        )
    else:
        written, following, why = _write_package(found, lineage, output, name or f"fast_{title}")
    if json:
        shown = {"run": found.run, "confirmed": found.confirmed, "written": written}
        print_json(shown)
    else:
        console.print(f"{found!r}")
        for path in written:
            console.print(f"  {path}")
        print_next(following, why)
    raise typer.Exit(0 if found.confirmed else 1)


def _write_package(
    found: Optimized, lineage: Sequence[StepFacts], to: Path, name: str
) -> tuple[list[str], str, str]:
    from kernel_smith.shipping.parcel import pack

    written = [str(path) for path in pack(found, lineage, to, name)]
    return written, f"cd {to} && python -m pytest tests/test_{name}.py", "does it work there?"


def _write_patch(
    found: Optimized,
    lineage: Sequence[StepFacts],
    to: Path,
    name: str,
    project: str,
    checkout: Path,
) -> tuple[list[str], str, str]:
    from kernel_smith.shipping.targets import find_target
    from kernel_smith.shipping.targets.op import op_of
    from kernel_smith.shipping.targets.patch import make_patch, with_text

    target, op = find_target(project), op_of(found, name)
    patch = make_patch(target, op, checkout)
    with writing(to, "choose a file with -o FILE"):
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(with_text(patch, target, op, found, lineage), "utf-8")
    for program in patch.unformatted_by:
        console.print(
            f"note: {program} is not installed here, so {project} may want it in another form"
        )
    apply = f"git -C {checkout} apply {to.absolute()}"
    return [str(to), *patch.files], apply, "then run its tests there"


@app.command()
def verify(
    run: RunName,
    function: Annotated[
        str, typer.Option(help="What the project runs today: FILE:FUNCTION, from the checkout.")
    ],
    checkout: Annotated[Path, typer.Option(help="Where the project is checked out.")],
    call: Annotated[
        str | None,
        typer.Option(
            help="How to call it, such as 'rms_norm(x, self.weight)'; default: as forward is."
        ),
    ] = None,
    project: ProjectName = None,
    inexact: Annotated[
        bool,
        typer.Option("--inexact", help="Its results are right, not those in double precision."),
    ] = False,
    store: StoreFile = None,
    engine: EngineAddress = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Judge the best kernel of a run against a project's function.

    The function that the project has today is taken from its file with what it needs; nothing is
    installed. Exits with 0 if the kernel is right and significantly faster, and with 1 if not.
    """
    from kernel_smith.evaluation import engines
    from kernel_smith.records import Options
    from kernel_smith.shipping.targets import find_target
    from kernel_smith.shipping.verify import task_against

    found, _ = _winner(run, store)
    root = "." if project is None else find_target(project).root
    task = task_against(
        found.task,
        Path(os.path.expanduser(checkout)).absolute(),
        root,
        function,
        call,
        exact=not inexact,
    )
    with progress(quiet) as report, engines.open_engine(engine) as judges:
        report(f"holding {found.task.name} against {function}")
        evaluation = judges.submit(task, found.candidate, Options()).result()
    if json:
        print_json(evaluation.model_dump(mode="json"))
    else:
        _print_comparison(evaluation, function)
    if evaluation.ok and not json:
        patch = command_of("ship", found.run, "-o", "mine.patch", store=store)
        print_next(f"{patch} --project NAME --checkout {checkout}", "write it as a patch")
    timing = evaluation.timing
    raise typer.Exit(0 if evaluation.ok and timing and timing.speedup.low > 1 else 1)


def _print_comparison(evaluation: Evaluation, function: str) -> None:
    from kernel_smith.shipping.verify import comparison

    for line in comparison(evaluation, function):
        console.print(line)


def _winner(run: str, store: Path | None) -> tuple[Optimized, Sequence[StepFacts]]:
    """Return the best of a run, and how it came about. Raises `BadInput` if there is none."""
    from kernel_smith.runs.run import fold
    from kernel_smith.shipping.found import Optimized
    from kernel_smith.store import History, Store, default_path

    with Store.open(store or default_path()) as book:
        wanted = book.find_run(run)
        state = fold(book, wanted)
        history = History.of(event for _, event in book.events(wanted))
    if state.best is None or history.best is None:
        raise BadInput(
            f"run {wanted} has found no kernel that could be timed",
            hint=command_of("runs", "show", wanted, store=store),
        )
    found = Optimized.of(state, history.ended or "still under way")
    return found, history.lineage(history.best)
