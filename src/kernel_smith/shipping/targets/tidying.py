"""Makes of a compiler's kernel a text that a project's linters take.

What a compiler writes has names that nobody reads, and functions whose names fill a line. Neither
changes what is computed; all else of the text stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.shipping.targets.renaming import renamed

_LONGEST_NAME, _SHORTENED = 60, 40
_HARMLESS = frozenset({"arange", "broadcast_to", "cdiv", "full", "load", "program_id", "zeros"})
"""Functions of `triton.language` that do nothing but give a value."""


def tidied(source: str) -> str:
    """Return the text without dead assignments, and with names of functions that fit into a
    line."""
    while True:
        lines = _dead_lines(ast.parse(source))
        if not lines:
            return renamed(source, _shorter(source))
        kept = enumerate(source.splitlines(keepends=True), 1)
        source = "".join(line for number, line in kept if number not in lines)


def _dead_lines(tree: ast.Module) -> set[int]:
    """Return the lines of assignments to local names that their function never reads."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        line
        for function in functions
        for statement in _dead_statements(function)
        for line in _lines(statement)
    }


def _lines(statement: ast.stmt) -> range:
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _dead_statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    read = _read(function)
    for block in _blocks(function):
        dead = [one for one in block if _assigned(one) and not _assigned(one) & read]
        shared = {line for one in block if one not in dead for line in _lines(one)}
        if shared:  # a block must not become empty
            yield from (one for one in dead if not shared.intersection(_lines(one)))


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        if isinstance(node, ast.ClassDef):
            continue  # its names are attributes
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def _read(function: ast.FunctionDef) -> set[str]:
    """Names that mean something beyond the place where they are assigned."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            names.update(node.names)
    return names


def _assigned(statement: ast.stmt) -> set[str]:
    """Return the names that a statement assigns, where it does nothing else; otherwise none."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return set()
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    whole = len(names) == len(targets) and statement.value is not None
    return names if whole and _is_harmless(statement.value) else set()


def _is_harmless(value: ast.expr | None) -> bool:
    return value is not None and all(
        _is_harmless_call(node) for node in ast.walk(value) if isinstance(node, ast.Call)
    )


def _is_harmless_call(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "tl"
        and function.attr in _HARMLESS
    )


def _shorter(source: str) -> dict[str, str]:
    """Functions with long names, and shorter names for them."""
    functions = [n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    names = [name for name in functions if len(name) > _LONGEST_NAME]
    return {name: f"{name[:_SHORTENED].rstrip('_')}_{number}" for number, name in enumerate(names)}
