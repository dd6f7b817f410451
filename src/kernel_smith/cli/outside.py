"""`kernel-smith ask` and `tell`: any person or coding agent can be the one who proposes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli import exit_codes
from kernel_smith.cli.candidates import read_candidate, write_candidate
from kernel_smith.cli.options import EngineAddress, Quiet, RunName, StoreFile
from kernel_smith.cli.output import (
    command_of,
    console,
    print_json,
    print_next,
    print_text,
    progress,
)
from kernel_smith.errors import BadInput, Interrupted
from kernel_smith.records import Evaluation

if TYPE_CHECKING:
    from kernel_smith.runs.outside import Assignment, Told


def ask(
    run: RunName,
    best: Annotated[
        bool, typer.Option("--best", help="Improve the best program, not a sampled one.")
    ] = False,
    parent: Annotated[
        str | None, typer.Option(metavar="STEP", help="Improve this step's program (or a hash).")
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print exactly what a model would be sent.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parent program.")
    ] = None,
    store: StoreFile = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print all of it as JSON: rules, dialect and reference.")
    ] = False,
) -> None:
    """Print what a run would ask of a model next.

    A parent, its evidence, and what failed before; with --prompt as a model gets it.
    """
    from kernel_smith.runs.outside import NothingToImprove, assign
    from kernel_smith.runs.run import replay
    from kernel_smith.store import Store, default_path

    if best and parent is not None:
        raise BadInput("--best and --parent together", hint="name one program to improve")
    with Store.open(store or default_path()) as book:
        state, strategy = replay(book, book.find_run(run))
    try:
        given = assign(state, strategy, best=best, parent=parent)
    except NothingToImprove as nothing:
        first = command_of("tell", state.run, "--candidate", "FILE", store=store)
        raise BadInput(nothing.what, hint=f"{first} adds the first") from None
    if json:
        print_json(given.model_dump(mode="json"))
    elif prompt:
        for message in given.messages:
            print_text(f"[{message.role}]\n{message.content}\n\n")
    else:
        path = output or Path(f"{state.task.name}_parent.py")
        assert given.request.parent is not None
        write_candidate(path, given.request.parent.candidate.source)
        _print(given, path)
        again = () if parent is None else ("--parent", parent)
        every = command_of("ask", state.run, "--prompt", *again, store=store)
        print_next(every, "the same as a model gets it, with rules, dialect and reference")
        answer = ("tell", state.run, "--candidate", "FILE", "--parent", str(given.parent_step))
        print_next(command_of(*answer, store=store), "with your version of it")


def _print(given: Assignment, path: Path) -> None:
    from kernel_smith.records.prose import render

    request = given.request
    task = f"{request.task.name} (precision {request.task.precision})"
    step = "" if given.parent_step is None else f" from step {given.parent_step}"
    console.print(f"Improve {path}{step}, which does task {task}.", style="bold")
    console.print(request.hardware)
    assert request.parent is not None
    judged = request.parent.evaluation
    other = None if judged.beside is None else given.steps.get(judged.beside.candidate_hash)
    told = render(judged) if other is None else render(judged, f"step {other}")
    console.print(told)
    for failure in request.failures:
        what = f"Tried and failed: {failure.summary}: {failure.stage.value}: {failure.reason.value}"
        console.print(what)
    for lesson in request.lessons:
        console.print(f"Learned: {lesson}")
    for exemplar in request.exemplars:
        number = given.steps.get(exemplar.candidate.content_hash)
        of_run = "" if number is None else f" of the run: step {number}"
        where = f"Another program{of_run}"
        console.print(f"{where}, {exemplar.score:.2f}x")


def tell(
    run: RunName,
    candidate: Annotated[Path, typer.Option(help="The program that you propose.")],
    parent: Annotated[
        str | None,
        typer.Option(metavar="STEP", help="What it was made from: a step's number, or a hash."),
    ] = None,
    summary: Annotated[str, typer.Option(help="What was changed, in a sentence.")] = "",
    engine: EngineAddress = None,
    store: StoreFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print the evaluation as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Judge a program as the next step of a run, whoever wrote it.

    Exits with 0 if it is correct, 1 if not, and 5 if the machine was too noisy to say whether it is
    faster.
    """
    from kernel_smith.evaluation.engines import open_engine
    from kernel_smith.runs import outside
    from kernel_smith.runs.run import Run
    from kernel_smith.store import Store, default_path

    with (
        Store.open(store or default_path()) as book,
        Run.open(book, book.find_run(run)) as opened,
    ):
        name = opened.state.run
        proposed = read_candidate(candidate, opened.state.config.backend)
        with progress(quiet) as report, open_engine(engine) as judge:
            report(f"judging {candidate}")
            try:
                told = outside.tell(opened, proposed, judge, parent, summary)
            except KeyboardInterrupt:
                raise Interrupted(
                    "interrupted: the program is kept, and not judged yet",
                    hint=f"judge it, and go on: {command_of('resume', name, store=store)}",
                ) from None
    if json:
        print_json(told.model_dump(mode="json"))
    else:
        _print_told(told)
        print_next(command_of("ask", name, store=store), "what to improve next")
    raise typer.Exit(exit_codes.of_evaluation(told.counts))


def _print_told(told: Told) -> None:
    """The verdict, what was measured again because of it, and who leads now."""
    from kernel_smith.records.prose import render

    console.print(render(told.evaluation))
    if told.measured_again:
        console.print("It took the lead, so it was measured again before that counts:")
    for again in told.measured_again:
        who = "this program" if again.step == told.step else f"step {again.step}, the best before"
        console.print(f"  {who}: {_shown(again.evaluation)}")
    if told.best_step == told.step:
        console.print("This is the best of the run so far.", style="bold")
    elif told.best_step is not None:
        console.print(f"The best of the run is step {told.best_step}.")


def _shown(evaluation: Evaluation) -> str:
    """Return the verdict, and how it compares with the one that it was timed beside."""
    from kernel_smith.records.prose import describe_speedup, headline

    timing = evaluation.timing
    if timing is None:
        return headline(evaluation)
    shown = describe_speedup(timing.speedup, timing.speedups[0].baseline)
    gain = evaluation.beside.gain if evaluation.beside is not None else None
    if gain is None:
        return shown
    return f"{shown}; side by side {describe_speedup(gain, 'the best before it')}"
