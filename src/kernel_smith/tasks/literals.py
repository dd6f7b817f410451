"""Literal values of a task file, read from its syntax tree with the line of each entry."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from kernel_smith.tasks.syntax import TaskFile


class Entry(NamedTuple):
    """One `key: value` of a dictionary display."""

    key: str
    line: int
    node: ast.expr


def entries(file: TaskFile, node: ast.expr, what: str, line: int) -> list[Entry]:
    """Return the entries of a dictionary with distinct string keys.

    `what` names the dictionary in errors, and `line` is where its own key stands.
    """
    if not isinstance(node, ast.Dict):
        value_of(file, node)
        raise file.error(
            line,
            f"{what} is `{_shown(node)}`, expected a dictionary",
            "write it as {...}, with quoted strings as keys",
        )
    found: dict[str, Entry] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        if not (isinstance(key_node, ast.Constant) and isinstance(key_node.value, str)):
            raise file.error(
                (key_node or value_node).lineno,
                f"{what} has a key that is not a string literal, expected one",
                "write every key as a quoted string",
            )
        key = value_of(file, key_node)
        if key in found:
            raise file.error(
                key_node.lineno,
                f"{what} has the key `{key}` twice, expected distinct keys",
                f"remove one; the first is on line {found[key].line}",
            )
        found[key] = Entry(key, key_node.lineno, value_node)
    return list(found.values())


def value_of(file: TaskFile, node: ast.expr) -> Any:
    """Return the value of a literal; anything else is an error at the innermost offending place."""
    offender = _not_literal(node)
    if offender is not None:
        raise file.error(
            offender.lineno,
            f"`{_shown(offender)}` is not a literal, expected a value as it stands",
            "write the value out: TASK is read without running the file",
        )
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            check_text(file, part.lineno, part.value)
    return ast.literal_eval(node)


def check_text(file: TaskFile, line: int, text: str) -> None:
    """Refuse half characters, which can neither be stored nor sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise file.error(
            line,
            "a string holds a lone surrogate, expected text that UTF-8 can hold",
            "remove the escape between \\ud800 and \\udfff",
        ) from None


def _not_literal(node: ast.expr) -> ast.expr | None:
    """Return the innermost expression that keeps a literal from being one."""
    for child in _parts(node):
        offender = _not_literal(child)
        if offender is not None:
            return offender
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return node
    return None


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return [part for part in (*node.keys, *node.values) if part is not None]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return node.elts
    return []


def _shown(node: ast.expr) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        return "..."
    return text if len(text) <= 40 else f"{text[:37]}..."
