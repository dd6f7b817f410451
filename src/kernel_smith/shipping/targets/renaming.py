"""Gives names of a text other names, and leaves all else of it as it was written."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping


def renamed(source: str, names: Mapping[str, str]) -> str:
    """Return the text with definitions and uses of these names renamed; not attributes and
    keywords."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    places = {place for node in ast.walk(ast.parse(source)) for place in _places(node, lines)}
    for row, column, old in sorted(places, reverse=True):
        if old in names:
            line = lines[row]
            rest = line[column + len(old.encode()) :]
            lines[row] = line[:column] + names[old].encode() + rest
    return b"".join(lines).decode()


def _places(node: ast.AST, lines: list[bytes]) -> list[tuple[int, int, str]]:
    """Tell where a node spells a name: row and byte, and the name."""
    if isinstance(node, ast.Name):
        return [(node.lineno - 1, node.col_offset, node.id)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        word = re.compile(rb"(?:def|class)\s+").match(lines[node.lineno - 1], node.col_offset)
        words = re.compile(rb"async\s+def\s+").match(lines[node.lineno - 1], node.col_offset)
        found = word or words
        return [(node.lineno - 1, found.end(), node.name)] if found else []
    return []
