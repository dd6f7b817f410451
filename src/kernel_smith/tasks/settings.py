"""The `TASK` dictionary of a task file: one reader per key, each error at its own line."""

from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from kernel_smith.records import Admission, Precision, Tolerance, Variant, Workload
from kernel_smith.tasks.literals import Entry, entries, value_of
from kernel_smith.tasks.syntax import TaskFile, did_you_mean, listed

Choice = TypeVar("Choice", bound=StrEnum)

# The closest spelling to "fp32" is "tf32", which is not what its author means.
PRECISION_HINT = (
    "write `strict` for the reference's own precision; the others allow coarser arithmetic"
)

_WORKLOAD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class LocatedWorkload(NamedTuple):
    """A workload with the lines of its name and of its arguments."""

    workload: Workload
    line: int
    lines: dict[str, int]


def read_settings(file: TaskFile) -> dict[str, Any]:
    """Return the fields that `TASK` sets. `workloads` holds `LocatedWorkload`s."""
    node = _task_node(file)
    if node is None:
        return {}
    settings = {}
    for entry in entries(file, node, "TASK", node.lineno):
        if entry.key not in _READERS:
            suggestion = did_you_mean(entry.key, _READERS, otherwise="remove the key")
            raise file.error(
                entry.line,
                f"TASK has an unknown key `{entry.key}`, expected one of {listed(_READERS)}",
                suggestion,
            )
        settings[entry.key] = _READERS[entry.key](file, entry)
    return settings


def _task_node(file: TaskFile) -> ast.expr | None:
    """Return the expression that `TASK` is bound to: once, plainly, at the top of the module."""
    changes = [statement for statement in file.statements() if _changes_task(statement)]
    for statement in changes:
        plain = (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ) or (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name))
        if not plain or statement not in file.tree.body or statement is not changes[0]:
            raise file.error(
                statement.lineno,
                "TASK is changed here, expected one plain assignment at module level",
                "write everything into one literal `TASK = {...}`: it is read without running",
            )
    first = changes[0] if changes else None
    return first.value if isinstance(first, (ast.Assign, ast.AnnAssign)) else None


def _changes_task(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Assign, ast.Delete)):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [statement.target]
    else:
        return False
    return any("TASK" in _root_names(target) for target in targets)


def _root_names(target: ast.expr) -> set[str]:
    """Return the names that an assignment to `target` binds, or whose values it changes."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*map(_root_names, target.elts))
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def _text(file: TaskFile, entry: Entry) -> str:
    value = value_of(file, entry.node)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(file, entry, value, "a string that is not empty", f'"{entry.key}": "..."')
    return value


def _flag(file: TaskFile, entry: Entry) -> bool:
    value = value_of(file, entry.node)
    if not isinstance(value, bool):
        raise _wrong(file, entry, value, "`True` or `False`", f'"{entry.key}": False')
    return value


def _number(file: TaskFile, entry: Entry, *, above_zero: bool) -> float:
    value = value_of(file, entry.node)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = _as_float(value)
        if math.isfinite(number) and (number > 0 or (number == 0 and not above_zero)):
            return number
    what = "a finite number above zero" if above_zero else "a finite number, zero or more"
    raise _wrong(file, entry, value, what, f'"{entry.key}": {1.0 if above_zero else 1e-5}')


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _precision(file: TaskFile, entry: Entry) -> Precision:
    return _choice(file, entry, value_of(file, entry.node), Precision, PRECISION_HINT)


def _choice(
    file: TaskFile, entry: Entry, value: Any, choices: type[Choice], hint: str = ""
) -> Choice:
    known = [choice.value for choice in choices]
    if isinstance(value, str) and value in known:
        return choices(value)
    raise file.error(
        entry.line,
        f"`{entry.key}` has the unknown name {value!r}, expected one of {listed(known)}",
        hint or did_you_mean(str(value), known, otherwise=f"choose one of {listed(known)}"),
    )


def _choices(choices: type[Choice]) -> Callable[[TaskFile, Entry], tuple[Choice, ...]]:
    def read(file: TaskFile, entry: Entry) -> tuple[Choice, ...]:
        value = value_of(file, entry.node)
        if not isinstance(value, (list, tuple)):
            example = f'"{entry.key}": ["{next(iter(choices)).value}"]'
            raise _wrong(file, entry, value, "a list of names", example)
        # Repeating a name changes nothing.
        return tuple(dict.fromkeys(_choice(file, entry, name, choices) for name in value))

    return read


def _tolerance(file: TaskFile, entry: Entry) -> Tolerance:
    bounds = {bound.key: bound for bound in entries(file, entry.node, "`tolerance`", entry.line)}
    for bound in bounds.values():
        if bound.key not in Tolerance.model_fields:
            raise file.error(
                bound.line,
                f"`tolerance` has an unknown key `{bound.key}`, expected `rtol` and `atol`",
                did_you_mean(bound.key, Tolerance.model_fields, otherwise="remove the key"),
            )
    for name in Tolerance.model_fields:
        if name not in bounds:
            raise file.error(
                entry.line,
                f"`tolerance` lacks `{name}`, expected both `rtol` and `atol`",
                'write "tolerance": {"rtol": 1e-5, "atol": 1e-6}',
            )
    return Tolerance(
        rtol=_number(file, bounds["rtol"], above_zero=False),
        atol=_number(file, bounds["atol"], above_zero=False),
    )


def _workloads(file: TaskFile, entry: Entry) -> tuple[LocatedWorkload, ...]:
    named = entries(file, entry.node, "`workloads`", entry.line)
    if not named:
        raise file.error(
            entry.line,
            "`workloads` is empty, expected at least one workload",
            'remove the key, or write "workloads": {"default": {}}',
        )
    return tuple(_workload(file, workload) for workload in named)


def _workload(file: TaskFile, entry: Entry) -> LocatedWorkload:
    if not _WORKLOAD_NAME.fullmatch(entry.key):
        raise file.error(
            entry.line,
            f"a workload is called {entry.key!r}, expected letters, digits, `_`, `.` and `-`",
            "rename the workload; the first character must be a letter or a digit",
        )
    weight = 1.0
    params = {}
    lines = {}
    for argument in entries(file, entry.node, f"workload `{entry.key}`", entry.line):
        if argument.key == "weight":
            weight = _number(file, argument, above_zero=True)
        else:
            params[argument.key] = _plain(file, argument, value_of(file, argument.node))
            lines[argument.key] = argument.line
    workload = Workload(name=entry.key, params=params, weight=weight)
    return LocatedWorkload(workload, entry.line, lines)


def _plain(file: TaskFile, entry: Entry, value: Any) -> Any:
    """Return the value as JSON would give it back, so that every process sees the same
    arguments."""
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(file, entry, value, "a finite number", f'"{entry.key}": 1e30')
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(file, entry, item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(file, entry, item) for key, item in value.items()}
    raise _wrong(
        file,
        entry,
        value,
        "numbers, strings, None, and lists and dictionaries of those",
        f'"{entry.key}": [2, 3]',
    )


def _starts(file: TaskFile, entry: Entry) -> dict[str, str]:
    starts = {}
    for start in entries(file, entry.node, "`starts`", entry.line):
        relative = _text(file, start)
        path = file.path.parent / relative
        if not os.path.isfile(path):
            raise file.error(
                start.line,
                f"the starting kernel {relative!r} is missing, expected the file {str(path)!r}",
                f"create the file, or remove `{start.key}` from `starts`",
            )
        starts[start.key] = str(path.resolve())
    return starts


def _wrong(file: TaskFile, entry: Entry, value: Any, expected: str, example: str) -> Exception:
    kind = type(value).__name__
    shown = repr(value) if len(repr(value)) <= 40 else f"a {kind}"
    return file.error(
        entry.line, f"`{entry.key}` is {shown}, expected {expected}", f"write it as {example}"
    )


_READERS: dict[str, Callable[[TaskFile, Entry], Any]] = {
    "name": _text,
    "family": _text,
    "description": _text,
    "precision": _precision,
    "workloads": _workloads,
    "tolerance": _tolerance,
    "variants": _choices(Variant),
    "library_calls": _flag,
    "admit": _choices(Admission),
    "starts": _starts,
}
