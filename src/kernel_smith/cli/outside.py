"""`kernel-smith ask` and `tell`: any person or coding agent can be the one who proposes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli import exit_codes
from kernel_smith.cli.candidates import read_candidate, write_candidate
from kernel_smith.cli.options import EngineAddress
from kernel_smith.cli.output import command_of, console, print_json, print_next, progress
from kernel_smith.errors import BadInput, Interrupted
from kernel_smith.records import Request

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState
    from kernel_smith.search.base import Ask, Strategy


def ask(
    run: Annotated[str, typer.Argument(help="A run's name, its beginning, or `latest`.")],
    best: Annotated[
        bool, typer.Option("--best", help="Improve the best program, not a sampled one.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the parent program.")
    ] = None,
    store: Annotated[Path | None, typer.Option(help="The file that runs are kept in.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the request as JSON.")] = False,
) -> None:
    """What a run would ask of a model: a parent, its evidence, and what failed before."""
    from kernel_smith.runs.requests import request_of
    from kernel_smith.runs.run import replay
    from kernel_smith.search.base import Ask
    from kernel_smith.search.context import context_of
    from kernel_smith.store import OUTSIDE, Store, default_path

    with Store.open(store or default_path()) as book:
        state, strategy = replay(book, book.find_run(run))
    if state.best is None:
        raise BadInput(
            f"run {state.run} has no program to improve yet",
            hint=command_of("tell", state.run, "--candidate", "FILE", store=store)
            + " adds the first",
        )
    rng = random.Random()
    asked = None if best else _next_ask(strategy, state, rng)
    if asked is None:
        name = state.best.candidate.content_hash
        asked = Ask(worker=OUTSIDE, parent=name, context=context_of(state, name))
    request = request_of(state, asked, rng.getrandbits(32))
    assert request.parent is not None
    parent = request.parent
    if json:
        print_json(request.model_dump(mode="json"))
        return
    path = output or Path(f"{state.task.name}_parent.py")
    write_candidate(path, parent.candidate.source)
    _print(request, path)
    identity = parent.candidate.content_hash[:12]
    answer = ("tell", state.run, "--candidate", "FILE", "--parent", identity)
    print_next(command_of(*answer, store=store), "with your version of it")


def _next_ask(strategy: Strategy, state: RunState, rng: random.Random) -> Ask | None:
    """What the run's method would ask for next; None if that is no change of a program."""
    from kernel_smith.search.base import Exhausted

    try:
        asked = strategy.next(state, tuple(state.config.proposers), rng)
    except Exhausted:
        return None
    return asked if asked is not None and asked.parent is not None else None


def _print(request: Request, path: Path) -> None:
    from kernel_smith.records.prose import render

    task = f"{request.task.name} (precision {request.task.precision})"
    console.print(f"Improve {path}, which does task {task}.", style="bold")
    console.print(request.hardware, markup=False)
    assert request.parent is not None
    console.print(render(request.parent.evaluation), markup=False)
    for failure in request.failures:
        what = f"Tried and failed: {failure.summary}: {failure.stage.value}: {failure.reason.value}"
        console.print(what, markup=False)
    for lesson in request.lessons:
        console.print(f"Learned: {lesson}", markup=False)
    for exemplar in request.exemplars:
        identity = exemplar.candidate.content_hash[:12]
        console.print(
            f"Another program of the run: {identity}, {exemplar.score:.2f}x", markup=False
        )


def tell(
    run: Annotated[str, typer.Argument(help="A run's name, its beginning, or `latest`.")],
    candidate: Annotated[Path, typer.Option(help="The program that you propose.")],
    parent: Annotated[
        str | None, typer.Option(help="The candidate that it was made from (its hash).")
    ] = None,
    summary: Annotated[str, typer.Option(help="What was changed, in a sentence.")] = "",
    engine: EngineAddress = None,
    store: Annotated[Path | None, typer.Option(help="The file that runs are kept in.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the evaluation as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Judge a program as the next step of a run, whoever wrote it.

    Exits with 0 if it is correct, 1 if not, and 5 if the machine was too noisy to say whether it is
    faster.
    """
    from kernel_smith.evaluation.engines import open_engine
    from kernel_smith.records.prose import render
    from kernel_smith.runs.run import Run
    from kernel_smith.store import Store, default_path

    with (
        Store.open(store or default_path()) as book,
        Run.open(book, book.find_run(run)) as opened,
    ):
        state = opened.state
        proposed = read_candidate(candidate, state.config.backend)
        origin = _find_parent(list(state.evaluated), parent)
        with progress(quiet) as report, open_engine(engine) as judge:
            report(f"judging {candidate}")
            try:
                number = opened.tell(proposed, judge, origin, summary)
            except KeyboardInterrupt:
                again = command_of("resume", state.run, store=store)
                raise Interrupted(
                    "interrupted: the program is kept, and not judged yet",
                    hint=f"judge it, and go on with the run: {again}",
                ) from None
        evaluation = state.steps[number].evaluation
        assert evaluation is not None
        if json:
            print_json({"step": number, "evaluation": evaluation.model_dump(mode="json")})
        else:
            console.print(render(evaluation), markup=False)
            if state.best is not None and state.best.candidate == proposed:
                console.print("This is the best of the run so far.", style="bold")
            print_next(command_of("ask", state.run, store=store), "what to improve next")
    raise typer.Exit(exit_codes.of_evaluation(evaluation))


def _find_parent(known: list[str], prefix: str | None) -> str | None:
    if prefix is None:
        return None
    matching = [identity for identity in known if identity.startswith(prefix)]
    if len(matching) != 1:
        found = "none" if not matching else f"{len(matching)}"
        raise BadInput(
            f"--parent {prefix}: {found} of the run's candidates begin so, expected one",
            hint="copy the hash from `kernel-smith ask` or `kernel-smith runs show`",
        )
    return matching[0]
