"""Makes the compiler's Triton kernels such as people and edits can work on, without changing them.

Sizes are constants of a launch instead of parameters that the first lines overwrite, loops are
plain ranges, and names that nobody reads are gone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_HARMLESS = {"tl.full", "tl.arange"}
_PLAIN_LOOP = re.compile(r"\bfor (\w+) in tl\.range\(([^=\n]*)\):")


def clean(text: str) -> str:
    """Return the same function, easier to work on. `text` is one function without decorators."""
    text = _PLAIN_LOOP.sub(r"for \1 in range(\2):", text)
    kernel = _function(text)
    overwritten = dict(_overwritten(kernel))
    if overwritten:
        text = _without_lines(text, set(overwritten.values()))
        head, colon, body = text.partition("):")
        for name in overwritten:
            head = re.sub(rf"\b{name}\b", f"{name}: tl.constexpr", head)
        text = head + colon + body
    while unread := _unread(_function(text)):
        text = _without_lines(text, unread)
    return text


def _function(text: str) -> ast.FunctionDef:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _overwritten(kernel: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Parameters that are numbers, and the lines that say which; a launch passes the same."""
    parameters = {argument.arg for argument in kernel.args.args if argument.annotation is None}
    for statement in kernel.body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(value=int())) if (
                name in parameters
            ):
                yield name, statement.lineno


def _unread(kernel: ast.FunctionDef) -> set[int]:
    """Lines that only give a name to something, where nobody reads the name."""
    names = [node for node in ast.walk(kernel) if isinstance(node, ast.Name)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    lines = set()
    for node in ast.walk(kernel):
        match node:
            case (
                ast.Assign(targets=[ast.Name(name)], value=value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ) if name not in read and _does_nothing(value):
                lines.add(node.lineno)
    return lines


def _does_nothing(value: ast.expr) -> bool:
    """Tell whether it only computes, so that it can be left out."""
    called = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return all(ast.unparse(function) in _HARMLESS for function in called)


def _without_lines(text: str, numbers: set[int]) -> str:
    lines = text.splitlines()
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in numbers)
