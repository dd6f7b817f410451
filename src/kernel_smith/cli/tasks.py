"""`kernel-smith tasks`: what there is to speed up."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

import typer

from kernel_smith.cli.exit_codes import NEGATIVE
from kernel_smith.cli.options import PrecisionName, Quiet, TaskName
from kernel_smith.cli.output import console, print_columns, print_json, print_next, progress
from kernel_smith.cli.task_words import precision_words
from kernel_smith.records import Task
from kernel_smith.records.admission import FINDINGS, remedy_for
from kernel_smith.tasks import builtin_tasks, find_task

app = typer.Typer(help="List, show and check tasks.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_tasks(
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            help="cpu: small sizes; gpu: the sizes that servers see; maca: operators with CUDA "
            "and MACA starting kernels.",
        ),
    ] = "cpu",
    json: Json = False,
) -> None:
    """List the built-in tasks of a suite."""
    found = builtin_tasks(suite)
    if json:
        fields = {"name", "family", "description", "precision"}
        print_json({"tasks": [t.model_dump(mode="json", include=fields) for t in found]})
        return
    rows = [(t.name, t.family, _workloads(t), _first_sentence(t)) for t in found]
    print_columns([("task", "family", "workloads", "description"), *rows], spare=("workloads",))
    print_next(f"kernel-smith tasks show {found[0].name}", "its reference and workloads")


def _first_sentence(task: Task) -> str:
    whole = " ".join(task.description.split())
    return re.split(r"(?<=\.) ", whole, maxsplit=1)[0]


def _workloads(task: Task) -> str:
    return ", ".join(workload.name for workload in task.workloads)


@app.command("show")
def show(task: TaskName, json: Json = False) -> None:
    """Show a task: its settings and its reference."""
    found = find_task(task)
    if json:
        print_json(found.model_dump(mode="json"))
        return
    console.print(f"{found.name} ({found.family})", style="bold")
    console.print(found.description)
    console.print(f"precision: {found.precision}")
    for workload in found.workloads:
        console.print(f"workload {workload.name}: {workload.params} weight {workload.weight:g}")
    for backend, path in found.starts.items():
        console.print(f"starting kernel ({backend}): {path}")
    console.print()
    console.print(found.source)
    _print_evaluate(task, found)


@app.command("check")
def check(
    task: TaskName,
    precision: PrecisionName = None,
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds that running the reference may take.")
    ] = 120.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check whether a task tells right answers from wrong ones.

    Exits with 1 if it cannot.
    """
    from kernel_smith.evaluation.engines import LocalEngine

    found = find_task(task, precision)
    with progress(quiet) as report, LocalEngine() as engine:
        report(f"running the reference of {found.name}")
        findings = engine.examine(found, report, patience=patience)
    refused = [finding for finding in findings if finding[1] not in found.admit]
    if json:
        rows = [{"workload": w, "finding": f.value} for w, f in findings]
        print_json({"task": found.name, "admitted": not refused, "findings": rows})
    else:
        for workload, finding in findings:
            said = f"{finding.value}: {FINDINGS[finding].sentence}"
            console.print(f"workload {workload}: {said}")
        verdict = f"{'refused' if refused else 'admitted'} (precision {found.precision})"
        console.print(f"{found.name}: {verdict}", style="bold")
        if refused:
            console.print(f"Fix it: {remedy_for({f for _, f in refused})}.")
            flags = [f"--admit {name}" for name in sorted({f.value for _, f in refused})]
            options = " ".join([*flags, *precision_words(found)])
            command = f"kernel-smith evaluate {shlex.quote(task)} CANDIDATE {options}"
            again = ["kernel-smith", "tasks", "check", task, *precision_words(found)]
            print_next(shlex.join(again), "when it is fixed")
            print_next(command, "to use it all the same")
        else:
            _print_evaluate(task, found)
    raise typer.Exit(NEGATIVE if refused else 0)


def _print_evaluate(argument: str, task: Task) -> None:
    command = ["kernel-smith", "evaluate", argument]
    if task.starts:
        print_next(shlex.join(command + precision_words(task)), "judge its starting kernel")
    else:
        command += ["CANDIDATE", *precision_words(task)]
        print_next(shlex.join(command), "judge a kernel of yours")
