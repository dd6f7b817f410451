"""`kernel-smith profile`: which modules of a program are worth a kernel."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernel_smith.cli.candidates import make_folder
from kernel_smith.cli.output import console, print_json, print_next
from kernel_smith.errors import BadInput, why_no_file

if TYPE_CHECKING:
    from kernel_smith.shipping.profiling import Finding


def profile(
    script: Annotated[Path, typer.Argument(help="A Python program that calls modules.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="What the program gets, after --.", metavar="ARGUMENT"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for task files of them.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="How many to name.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Name the modules that take a program's time.

    And how much of it a kernel could save. Your program is executed. The least time of a call is
    that of moving its bytes, or of its products, whichever is longer, at the rates of this machine.
    Modules within modules count as part of both. Exits with 0 if there is something to optimize,
    and with 1 if not.
    """
    from kernel_smith.shipping.profiling import profile_script

    if not os.path.isfile(script):  # False also where there is no permission to look
        what = f"{script}: {why_no_file(script)}, expected a Python program"
        raise BadInput(what, hint="check the path")
    if output is not None:
        make_folder(output)
    # What the program prints is not part of the findings.
    with contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        report = profile_script(script, arguments or [], most)
    written = {}
    if output is not None:
        written = {each.name: _written(each, output) for each in report.findings if each.task}
    if json:
        shown = [_facts(f) | {"file": written.get(f.name)} for f in report.findings]
        print_json({"seconds": report.seconds, "findings": shown})
    else:
        _print(report.findings, report.seconds)
        if written:
            print_next(f"kernel-smith optimize {next(iter(written.values()))}", "the first of them")
        elif report.findings:
            print_next(f"kernel-smith profile {script} -o tasks", "task files of them")
    raise typer.Exit(0 if report.findings else 1)


def _written(finding: Finding, folder: Path) -> str:
    assert finding.task is not None
    path = folder / f"{finding.name}.py"
    path.write_text(finding.task.source, "utf-8")
    return str(path)


def _facts(finding: Finding) -> dict[str, Any]:
    plain = ("name", "class_name", "shapes", "calls", "seconds", "share", "least_seconds")
    facts = {name: getattr(finding, name) for name in plain}
    return facts | {"possible": finding.possible, "why_no_task": finding.why_no_task}


def _print(findings: tuple[Finding, ...], seconds: float) -> None:
    console.print(f"{seconds:.2f} s in all")
    width = max([len(one.name) for one in findings], default=4)
    figures = f"{'calls':>7s} {'per call':>11s} {'share':>6s} {'limit':>11s} {'saves':>6s}"
    console.print(f"{'name':{width}s} {figures}  arguments", style="bold")
    for one in findings:
        row = (
            f"{one.name:{width}s} {one.calls:7d} {1e6 * one.seconds / one.calls:8.1f} us "
            f"{one.share:6.1%} {1e6 * one.least_seconds:8.1f} us {one.possible:6.1%}  {one.shapes}"
        )
        console.print(row)
        if one.why_no_task:
            console.print(f"{'':{width}s} no task by itself: {one.why_no_task}")
