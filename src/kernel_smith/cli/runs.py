"""`kernel-smith runs`: what past and present runs did, and what came of them."""

from __future__ import annotations

import difflib
import itertools
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel_smith.cli.options import RunName, StoreFile
from kernel_smith.cli.output import (
    command_of,
    console,
    print_columns,
    print_json,
    print_next,
    written,
)
from kernel_smith.cli.runs_export import write_run
from kernel_smith.cli.task_words import words_of
from kernel_smith.errors import BadInput
from kernel_smith.records.counts import counted
from kernel_smith.store import History, RunSummary, StepFacts, Store

app = typer.Typer(help="List, show and compare runs; export their steps.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_runs(json: Json = False, store: StoreFile = None) -> None:
    """List every run, the newest first."""
    with Store.open(store) as opened:
        summaries = opened.runs()
    if json:
        print_json({"runs": [summary.model_dump(mode="json") for summary in summaries]})
        return
    if not summaries:
        console.print("no runs yet")
        print_next("kernel-smith optimize TASK", "start one")
        return
    _print_summaries(summaries)
    newest = summaries[0]
    if newest.state == "interrupted":
        print_next(command_of("resume", newest.id, store=store), "it was interrupted")
    else:
        print_next(command_of("runs", "show", newest.id, store=store), "the newest in full")


@app.command("show")
def show(run: RunName, json: Json = False, store: StoreFile = None) -> None:
    """Show one run: settings, steps, the best kernel, cost."""
    from kernel_smith.cli import runs_text

    with _opened(run, store) as (opened, history):
        state = next(each.state for each in opened.runs() if each.id == history.run)
    if json:
        print_json(runs_text.as_json(history, state))
        return
    console.print(f"{history.run}: {state}", style="bold")
    for line in runs_text.describe(history):
        console.print(line)
    if state == "interrupted":
        print_next(command_of("resume", history.run, store=store), "it was interrupted")
    elif history.best is not None:
        print_next(command_of("runs", "best", history.run, store=store), "write the winning kernel")
    else:
        export = ("runs", "export", history.run, "-o", f"{history.run}.jsonl")
        print_next(command_of(*export, store=store), "every step, with its reason")


@app.command("best")
def best(
    run: RunName,
    step: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Write this step's; a number or a hash's beginning."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write.")
    ] = None,
    json: Json = False,
    store: StoreFile = None,
) -> None:
    """Write the winning kernel of a run to a file, or another step's.

    Default: TASK_best.py, or TASK_stepN.py.
    """
    with _opened(run, store) as (opened, history):
        winner = _best(history, store) if step is None else _find(history, step, store)
        program = opened.candidate(winner.candidate)
    which = "best" if step is None else f"step{winner.step}"
    path = output or Path(f"{history.task.name}_{which}.py")
    with written(path) as write:
        write(program.source)
    if json:
        print_json({"run": history.run, "path": str(path), **_facts(winner)})
        return
    confirmed = "confirmed" if winner.confirmed else "not shown to be faster at full length"
    console.print(f"{path}: step {winner.step}, {_speedup(winner)}, {confirmed}")
    name, *options = words_of(history.task)
    command = ["kernel-smith", "evaluate", name, str(path), "--backend", program.backend]
    print_next(shlex.join([*command, *options]), "measure it once more")


@app.command("diff")
def diff(
    run: RunName,
    first: Annotated[
        str | None, typer.Argument(metavar="A", help="A step's number or a hash's beginning.")
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="B", help="Likewise.")] = None,
    json: Json = False,
    store: StoreFile = None,
) -> None:
    """Show what B changed in A.

    With A alone: what A changed in its parent; default: the best.
    """
    with _opened(run, store) as (opened, history):
        old, new = _pair(history, first, second, store)
        before, after = (opened.candidate(each.candidate).source for each in (old, new))
    names = [f"step {each.step} ({_speedup(each)})" for each in (old, new)]
    compared = before.splitlines(), after.splitlines()
    lines = list(difflib.unified_diff(*compared, names[0], names[1], lineterm=""))
    if json:
        print_json({"a": _facts(old), "b": _facts(new), "diff": lines})
        return
    for line in lines or ["the two are the same program"]:
        console.print(line, style=_COLOURS.get(line[:1], ""))
    lineage = command_of("runs", "lineage", history.run, str(new.step), store=store)
    print_next(lineage, "how it came to be")


@app.command("lineage")
def lineage(
    run: RunName,
    step: Annotated[
        str | None, typer.Argument(help="A step's number or a hash's beginning; default: the best.")
    ] = None,
    json: Json = False,
    store: StoreFile = None,
) -> None:
    """Show how a candidate came about, and what each step gained.

    Gains with an interval are of the two timed side by side; others compare figures of different
    moments.
    """
    with _opened(run, store) as (_, history):
        wanted = _best(history, store) if step is None else _find(history, step, store)
        path = history.lineage(wanted)
    pairs = list(itertools.pairwise(path))
    gains = [None, *(_gain(old, new) for old, new in pairs)]
    if json:
        rows = [_facts(facts) | {"gain": gain} for facts, gain in zip(path, gains, strict=True)]
        for row, (old, new) in zip(rows[1:], pairs, strict=True):
            beside = new.beside.get(old.candidate)
            row["side_by_side"] = beside.model_dump() if beside is not None else None
        print_json({"run": history.run, "lineage": rows})
        return
    _print_lineage(path, [None, *(_gain_in_words(old, new) for old, new in pairs)])
    if len(path) > 1:
        pair = [str(facts.step) for facts in path[-2:]]
        print_next(command_of("runs", "diff", history.run, *pair, store=store), "the last change")
    else:
        print_next(command_of("runs", "show", history.run, store=store), "the whole run")


@app.command("export")
def export(
    run: RunName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write; its ending says the format."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="In place of a file: mlflow or wandb, by their clients.")
    ] = None,
    json: Json = False,
    store: StoreFile = None,
) -> None:
    """Write every step of a run for other programs.

    FILE.parquet and FILE.csv are a table of steps. FILE.trace.json is the run over time, for
    Perfetto (https://ui.perfetto.dev) or chrome://tracing. FILE.jsonl holds all there is, as JSON
    Lines: proposal, evaluation and prompts of each step; the first line describes the run, the last
    one says `done`, and a file without it is incomplete.
    """
    from kernel_smith.exports.story import story_of
    from kernel_smith.exports.trackers import send

    if (output is None) == (to is None):
        raise BadInput("expected either a file or a tracker", hint="-o FILE, or --to mlflow")
    with Store.open(store) as opened:
        name = opened.find_run(run)
        events = (event for _, event in opened.events(name))
        if output is not None:
            count, where = write_run(events, output), str(output)
        else:
            story = story_of(events)
            count, where = len(story.steps), send(story, str(to))
    if json:
        print_json({"run": name, "path": where, "steps": count})
        return
    console.print(f"{where}: {counted(count, 'step')} of {name}")
    print_next(command_of("runs", "show", name, store=store), "the same run in short")


_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@contextmanager
def _opened(run: str, store: Path | None) -> Iterator[tuple[Store, History]]:
    with Store.open(store) as opened:
        name = opened.find_run(run)
        yield opened, History.of(event for _, event in opened.events(name))


def _best(history: History, store: Path | None) -> StepFacts:
    if history.best is None:
        shown = command_of("runs", "show", history.run, store=store)
        raise BadInput(
            f"run {history.run} has no correct and timed candidate yet",
            hint=f"{shown} says how far its steps came",
        )
    return history.best


def _find(history: History, wanted: str, store: Path | None) -> StepFacts:
    """Return the step with this number, or whose candidate's hash starts like this."""
    if wanted.isdecimal() and int(wanted) in history.steps:
        return history.steps[int(wanted)]
    beginning = wanted.lower()
    matching = [key for key in history.by_candidate if key.startswith(beginning)]
    if len(matching) == 1:
        return history.by_candidate[matching[0]]
    if matching:
        what = f"{wanted!r} starts the hashes of {len(matching)} candidates of {history.run}"
        raise BadInput(what, hint="write more of the hash, or a step's number")
    last = max(history.steps, default=None)
    steps = f"steps go up to {last}" if last is not None else "it has no steps yet"
    raise BadInput(
        f"run {history.run} has no step or candidate {wanted!r}, expected a step's number or the "
        f"beginning of a hash ({steps})",
        hint=command_of("runs", "lineage", history.run, store=store),
    )


def _pair(
    history: History, first: str | None, second: str | None, store: Path | None
) -> tuple[StepFacts, StepFacts]:
    if first is not None and second is not None:
        return _find(history, first, store), _find(history, second, store)
    new = _best(history, store) if first is None else _find(history, first, store)
    path = history.lineage(new)
    if len(path) < 2:
        raise BadInput(
            f"step {new.step} of {history.run} has no parent to compare with",
            hint=f"name two: {command_of('runs', 'diff', history.run, 'A', 'B', store=store)}",
        )
    return path[-2], new


def _facts(facts: StepFacts) -> dict[str, Any]:
    from kernel_smith.cli.runs_text import step_as_json

    return step_as_json(facts)


def _gain(old: StepFacts, new: StepFacts) -> float | None:
    """Tell how many times as fast as its parent: timed side by side with it, if they were."""
    beside = new.beside.get(old.candidate)
    if beside is not None:
        return beside.value
    if old.speedup is None or new.speedup is None:
        return None
    return new.speedup.value / old.speedup.value


def _gain_in_words(old: StepFacts, new: StepFacts) -> str:
    gain, beside = _gain(old, new), new.beside.get(old.candidate)
    if gain is None:
        return ""
    if beside is None:
        return f"{gain - 1:+.1%}"
    return f"{gain - 1:+.1%} [{beside.low - 1:+.1%}, {beside.high - 1:+.1%}]"


def _speedup(facts: StepFacts) -> str:
    from kernel_smith.cli.runs_text import outcome

    return outcome(facts)


def _print_summaries(summaries: list[RunSummary]) -> None:
    rows = [("run", "task", "backend", "state", "evaluations", "best", "confirmed", "started")]
    for each in summaries:
        speedup = f"{each.best.value:.2f}x" if each.best else "-"
        evaluations, started = str(each.evaluations), f"{each.started:%F %R}"
        found = (evaluations, speedup, "yes" if each.confirmed else "no")
        rows.append((each.id, each.task, each.backend, each.state, *found, started))
    print_columns(rows, spare=("task", "backend", "started", "evaluations"))


def _print_lineage(path: list[StepFacts], gains: list[str | None]) -> None:
    rows = [("step", "proposed by", "speedup", "gain", "what")]
    for facts, gain in zip(path, gains, strict=True):
        what = facts.summary.split("\n")[0]
        rows.append((str(facts.step), facts.proposer, _speedup(facts), gain or "", what))
    print_columns(rows)
