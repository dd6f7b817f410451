"""Run a user's program, and name the modules that are worth a kernel."""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernel_smith.errors import BadInput
from kernel_smith.records import Task
from kernel_smith.shipping.live import Call, live_task
from kernel_smith.shipping.profiling.limits import Rates, dtype_of, least_seconds
from kernel_smith.shipping.profiling.watching import Group, Watcher
from kernel_smith.shipping.runtime.signatures import tensors_in

_MOST_PARTS = 12  # beyond that it is a network, of which no one kernel can be made


@dataclass(frozen=True)
class Finding:
    """One group of modules; `possible` is the share of the program's time that could be saved."""

    name: str
    class_name: str
    shapes: str
    calls: int
    seconds: float
    share: float
    least_seconds: float
    possible: float
    task: Task | None
    why_no_task: str = ""


@dataclass(frozen=True)
class Report:
    """What was found, the most worthwhile first."""

    seconds: float
    findings: tuple[Finding, ...]


def profile_script(script: Path, arguments: Sequence[str], most: int) -> Report:
    """Run the program as if it had been started by itself. Raises `BadInput` if it fails."""
    watcher = Watcher()
    begun = time.perf_counter()
    with watcher.watching(), _as_program(script, arguments):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise BadInput(f"{script} exits with {ended.code}", hint=_hint(script)) from None
        except Exception as error:
            raise BadInput(f"{script} fails: {error!r}", hint=_hint(script)) from error
    total = time.perf_counter() - begun
    return Report(total, tuple(_findings(watcher, total, most)))


def _hint(script: Path) -> str:
    return f"it has to run by itself: python {script}"


@contextmanager
def _as_program(script: Path, arguments: Sequence[str]) -> Any:
    words, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = words, path


def _findings(watcher: Watcher, total: float, most: int) -> list[Finding]:
    rates: dict[tuple[torch.device, torch.dtype], Rates] = {}
    found = []
    for group in watcher.groups.values():
        if group.arguments is None or not group.calls:
            continue
        if sum(1 for _ in group.module.modules()) > _MOST_PARTS:
            continue
        device = next(tensors_in(group.arguments)).device
        key = device, dtype_of(group.module, group.arguments)
        if key not in rates:
            rates[key] = Rates.of(*key)
        least = least_seconds(group.module, group.arguments, group.result_bytes, rates[key])
        found.append((max(0.0, group.seconds - least * group.calls), least, group))
    found.sort(key=lambda one: -one[0])
    names: set[str] = set()
    return [_finding(saved, least, group, total, names) for saved, least, group in found[:most]]


def _finding(saved: float, least: float, group: Group, total: float, names: set[str]) -> Finding:
    plain = type(group.module).__name__.lower()
    name = next(n for i in range(len(names) + 1) if (n := plain + f"_{i}" * bool(i)) not in names)
    names.add(name)
    assert group.arguments is not None
    task, why = None, ""
    try:
        task = live_task(group.module, [Call(group.arguments)], name)
    except BadInput as error:
        why = error.what
    return Finding(
        name=name,
        class_name=type(group.module).__qualname__,
        shapes=group.shapes,
        calls=group.calls,
        seconds=group.seconds,
        share=group.seconds / total,
        least_seconds=least,
        possible=saved / total,
        task=task,
        why_no_task=why,
    )
