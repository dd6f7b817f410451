"""`kernel-smith doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import typer

from kernel_smith.cli.output import console, print_json, print_next
from kernel_smith.errors import MissingPrerequisite

# What the checks need is imported in them: it would double the time that `--help` takes.
State = Literal["ok", "degraded", "missing"]
_MISSING_PREREQUISITE = 3


class Check(NamedTuple):
    name: str
    state: State
    found: str
    remedy: str = ""


def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check this machine. Exits with 3 if something essential is missing."""
    checks = [result for check in _CHECKS for result in check()]
    if json:
        print_json({"checks": [check._asdict() for check in checks]})
    else:
        marks = {
            "ok": "[green]ok[/]      ",
            "degraded": "[yellow]degraded[/]",
            "missing": "[red]missing[/] ",
        }
        for check in checks:
            console.print(f"{marks[check.state]}  {check.name}: {check.found}")
            if check.remedy:
                console.print(f"          hint: {check.remedy}", markup=False)
        print_next("kernel-smith tasks list", "what to evaluate")
    essential = any(check.state == "missing" for check in checks)
    raise typer.Exit(_MISSING_PREREQUISITE if essential else 0)


def _software() -> list[Check]:
    from importlib.metadata import PackageNotFoundError, version

    checks = [Check("python", "ok", platform.python_version())]
    try:
        checks.append(Check("torch", "ok", version("torch")))
    except PackageNotFoundError:
        checks.append(Check("torch", "missing", "not installed", "pip install torch"))
    try:
        found = f"{version('triton')}: its candidates are interpreted, and compiled for other GPUs"
        checks.append(Check("triton", "ok", found))
    except PackageNotFoundError:
        remedy = "pip install 'kernel-smith[triton]'"
        checks.append(Check("triton", "degraded", "not installed: no Triton candidates", remedy))
    return checks


def _compiler() -> list[Check]:
    from kernel_smith.inline.toolchain import find_toolchain

    try:
        return [Check("C++ compiler", "ok", find_toolchain("cpp").version)]
    except MissingPrerequisite as error:
        return [Check("C++ compiler", "missing", error.what, error.hint)]


def _cores() -> list[Check]:
    count = len(os.sched_getaffinity(0))
    if count > 1:
        return [Check("cores", "ok", f"{count}: one for the judge, {count - 1} for timed work")]
    remedy = "timings will be noisy; give this process two cores or more"
    return [Check("cores", "degraded", "1: judge and timed work share it", remedy)]


def _confinement() -> list[Check]:
    from kernel_smith.evaluation.sandbox.confine import probe

    report = probe()
    checks = [Check("confinement", "ok", ", ".join(report.enforced) or "nothing enforced")]
    return checks + [
        Check("confinement", "degraded", line, "see SECURITY.md on what needs which kernel feature")
        for line in report.missing
    ]


def _sampling() -> list[Check]:
    from kernel_smith.evaluation.judge.perf_events import available

    reason = available()
    if reason is None:
        return [Check("time shares by module", "ok", "perf_event_open works")]
    return [Check("time shares by module", "degraded", reason)]


def _cache() -> list[Check]:
    from kernel_smith.inline.cache import cache_root

    root = cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        usable = os.access(root, os.W_OK)
    except OSError:
        usable = False
    if usable:
        return [Check("cache", "ok", str(root))]
    remedy = "set KERNEL_SMITH_CACHE to a folder that can be written"
    return [Check("cache", "missing", f"{root} cannot be written", remedy)]


def _accelerators() -> list[Check]:
    if shutil.which("nvidia-smi"):
        return [Check("NVIDIA GPU", "ok", "nvidia-smi found; no backend uses it yet")]
    return [Check("NVIDIA GPU", "ok", "none; no backend needs one yet")]


_CHECKS: tuple[Callable[[], list[Check]], ...] = (
    _software,
    _compiler,
    _cores,
    _confinement,
    _sampling,
    _cache,
    _accelerators,
)
