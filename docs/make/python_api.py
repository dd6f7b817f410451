"""The page about the Python interface, from signatures and docstrings."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType
from typing import Any

from records import fields_of
from text import NOTE, code, joined, prose, table

from kernel_smith.records import Record

# What is meant to be used from outside, in the order in which one meets it.
PUBLIC = {
    "kernel_smith": ("optimize", "Optimized", "load", "evaluate", "seed"),
    "kernel_smith.errors": (
        "UserError",
        "BadInput",
        "NotAdmitted",
        "TookTooLong",
        "MissingPrerequisite",
        "NotEnoughMemory",
        "Interrupted",
        "InternalError",
    ),
    "kernel_smith.tasks": ("find_task", "read_task", "builtin_tasks", "with_precision"),
    "kernel_smith.evaluation.engines": ("open_engine", "LocalEngine", "LocalPool"),
    "kernel_smith.evaluation.engines.base": ("Evaluator", "Engine"),
    "kernel_smith.inline": ("cpp", "cuda", "maca", "hip", "compiled", "Library", "CompileError"),
    "kernel_smith.search.base": ("Strategy", "Ask", "Exhausted"),
    "kernel_smith.proposers.base": ("Worker", "Writer"),
    "kernel_smith.proposers.model.transport": ("Transport", "Batched", "Called"),
    "kernel_smith.knowledge": ("sections_for", "all_guides", "find_topic"),
    "kernel_smith.trajectories.build": ("BuildSettings", "build"),
    "kernel_smith.testing.method_suite": ("check_method",),
    "kernel_smith.testing.backend_suite": ("check_backend",),
}


def page() -> str:
    """Return the page."""
    lines = ["# Python", "", NOTE, ""]
    lines += [
        "What programs may import. `import kernel_smith as ks` is the front door; other modules",
        "are for those who judge by themselves or add a backend, a method or a model. Records have",
        "[a page of their own](records.md).",
        "",
    ]
    for module, names in PUBLIC.items():
        lines += [f"## {module}", ""]
        for name in names:
            lines += _section(name, inspect.unwrap(getattr(import_module(module), name)))
    return joined(lines)


def _section(name: str, thing: Any) -> list[str]:
    lines = [f"### {name}", ""]
    if isinstance(thing, FunctionType):
        return [*lines, *_signature(name, thing), *prose(thing.__doc__)]
    if issubclass(thing, Exception):
        return [*lines, *prose(_own_words(thing))]
    lines += [*_signature(f"class {name}", thing), *prose(_own_words(thing)), *_fields(thing)]
    for method, function in _methods(thing):
        lines += [f"#### {name}.{method}", ""]
        if isinstance(function, FunctionType):
            lines += _signature(method, function)
        lines += prose(function.__doc__)
    return lines


def _signature(name: str, thing: Any) -> list[str]:
    """Return a definition as it would be written, an argument per line where it is long."""
    if isinstance(thing, type) and (issubclass(thing, Record) or _is_protocol(thing)):
        return []  # the table of fields, or the methods, say it
    signature = inspect.signature(thing)
    parts = _parameters(signature)
    answer = (
        ""
        if signature.return_annotation in (signature.empty, None, "None")
        else (f" -> {_annotation(signature.return_annotation)}")
    )
    short = f"{name}({', '.join(parts)}){answer}"
    if len(short) > 100:
        short = "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){answer}"])
    return ["```python", short, "```", ""]


def _parameters(signature: inspect.Signature) -> list[str]:
    """Return parameters as they would be written, with the marks between their kinds."""
    parts: list[str] = []
    before = None
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if before == parameter.POSITIONAL_ONLY != parameter.kind:
            parts.append("/")
        if parameter.kind == parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            parts.append("*")
        before = parameter.kind
        marks = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = marks.get(parameter.kind, "") + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        parts.append(text)
    return parts


def _annotation(given: Any) -> str:
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def _default(value: Any) -> str:
    """Return a default as text that is the same each time: functions have addresses in theirs."""
    return "..." if callable(value) or " at 0x" in repr(value) else repr(value)


def _is_protocol(thing: type) -> bool:
    return bool(getattr(thing, "_is_protocol", False))


def _own_words(thing: type) -> str | None:
    """Return a class's docstring, unless it is what a dataclass makes up."""
    text = thing.__dict__.get("__doc__")
    return None if text is None or text.startswith(f"{thing.__name__}(") else text


def _fields(thing: type) -> list[str]:
    if issubclass(thing, Record):
        return fields_of(thing, "records.md")
    if not dataclasses.is_dataclass(thing):
        return []
    meanings = _words_below_fields(thing)
    rows = [
        (code(f.name), code(str(f.type)), meanings.get(f.name, ""))
        for f in dataclasses.fields(thing)
        if not f.name.startswith("_")
    ]
    return table(("field", "type", "meaning"), rows)


def _words_below_fields(thing: type) -> dict[str, str]:
    """Return what stands as a string below a field in the source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    assert isinstance(tree.body[0], ast.ClassDef)
    found = {}
    body = tree.body[0].body
    for field, below in itertools.pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = str(below.value.value)
    return found


def _methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Yield what its instances offer and have described."""
    for name, value in vars(thing).items():
        described = isinstance(value, FunctionType | property | functools.cached_property)
        if described and value.__doc__ and not name.startswith("_"):
            yield name, value
