"""Problems from a flashinfer-bench data set: its definitions, at the sizes of its workloads.

A definition has a reference in PyTorch, `run`, and inputs whose shapes name axes; a workload gives
the axes values. Inputs are drawn at random where the workload says so. What only exists as a file
of tensors, or as integers without a stated range, cannot be drawn with other seeds: such a
definition is listed as broken, with the reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kernel_smith.records import Precision, Task, Workload

_DEFINITIONS, _WORKLOADS = "definitions", "workloads"
_FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_MOST_WORKLOADS = 3  # the smallest, one in the middle, and the largest
_SOURCE = """import torch

{reference}


class Model(torch.nn.Module):
    def forward(self, {names}):
        return run({names})


def get_inputs({parameters}):
    return [{inputs}]
"""


class Read(NamedTuple):
    """A definition as a problem; without a task the reason why it cannot be one."""

    name: str
    level: str
    precision: Precision
    task: Task | None
    why: str


class _Unusable(Exception):
    """The definition cannot be a problem; the text says why."""


def is_flashinfer(folder: Path) -> bool:
    return (folder / _DEFINITIONS).is_dir() and (folder / _WORKLOADS).is_dir()


def read_definitions(folder: Path) -> Iterator[Read]:
    """Yield every definition of the data set, in the order of their files."""
    workloads = {path.stem: path for path in sorted((folder / _WORKLOADS).rglob("*.jsonl"))}
    for path in sorted((folder / _DEFINITIONS).rglob("*.json")):
        level = "flashinfer"
        try:
            definition = json.loads(path.read_text(encoding="utf-8"))
            level = str(definition["op_type"])
            task = _task(definition, _lines(workloads.get(path.stem)))
        except _Unusable as reason:
            yield Read(path.stem, level, Precision.STRICT, None, f"{path}: {reason}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"{path}: not a definition ({type(error).__name__}: {error})"
            yield Read(path.stem, level, Precision.STRICT, None, why)
        else:
            yield Read(path.stem, level, task.precision, task, "")


def _lines(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        raise _Unusable("there are no workloads for it")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["workload"] for line in lines if line.strip()]


def _task(definition: dict[str, Any], lines: list[dict[str, Any]]) -> Task:
    axes: dict[str, dict[str, Any]] = definition["axes"]
    inputs: dict[str, dict[str, Any]] = definition["inputs"]
    free = [name for name, axis in axes.items() if axis["type"] == "var"]
    scalars = [name for name, spec in inputs.items() if spec["shape"] is None]
    for name in (*axes, *inputs):
        if not name.isidentifier():
            raise _Unusable(f"{name!r} is no name in Python")
    sizes = {name: str(axis["value"]) for name, axis in axes.items() if name not in free}
    usable = [line for line in lines if _is_drawn(inputs, line)]
    if not usable:
        raise _Unusable("no workload of it can be drawn at random: all need files of tensors")
    source = _SOURCE.format(
        reference=definition["reference"].strip(),
        names=", ".join(inputs),
        parameters=", ".join([*free, *scalars]),
        inputs=", ".join(_made(name, spec, sizes) for name, spec in inputs.items()),
    )
    try:
        compile(source, definition["name"], "exec")
    except SyntaxError as error:
        raise _Unusable(f"its reference is not valid Python: {error}") from None
    return Task(
        name=definition["name"],
        source=source,
        family=definition["op_type"],
        description=definition.get("description") or "",
        workloads=tuple(_workload(line, scalars) for line in _spread(usable)),
    )


def _is_drawn(inputs: dict[str, dict[str, Any]], line: dict[str, Any]) -> bool:
    kinds = {name: line["inputs"][name]["type"] for name in inputs}
    return all(
        kinds[name] == ("scalar" if spec["shape"] is None else "random")
        for name, spec in inputs.items()
    )


def _made(name: str, spec: dict[str, Any], sizes: dict[str, str]) -> str:
    if spec["shape"] is None:
        return name
    shape = ", ".join(sizes.get(axis, axis) for axis in spec["shape"])
    if spec["dtype"] not in _FLOATS:
        raise _Unusable(f"input {name} is {spec['dtype']}, and random ones have no stated range")
    return f"torch.randn({shape}).to(torch.{spec['dtype']})"


def _spread(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a few that differ in size, from the smallest to the largest."""
    distinct = list({json.dumps(line["axes"], sort_keys=True): line for line in lines}.values())
    ordered = sorted(distinct, key=lambda line: math.prod(line["axes"].values()))
    last = len(ordered) - 1
    chosen = dict.fromkeys(
        round(last * step / (_MOST_WORKLOADS - 1)) for step in range(_MOST_WORKLOADS)
    )
    return [ordered[index] for index in chosen]


def _workload(line: dict[str, Any], scalars: list[str]) -> Workload:
    params = line["axes"] | {name: line["inputs"][name]["value"] for name in scalars}
    name = "-".join(f"{axis}{value}" for axis, value in line["axes"].items())
    return Workload(name=name or "default", params=params)
