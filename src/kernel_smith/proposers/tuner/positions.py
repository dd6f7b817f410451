"""Where the nodes of a Python syntax tree stand in the text, counted in characters."""

from __future__ import annotations

import ast
import re
from itertools import accumulate

# Carriage returns end lines for Python's parser, form feeds do not.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_QUOTES = re.compile(r"[A-Za-z]{0,2}(\"\"\"|'''|\"|')")


class Positions:
    """Turns lines and columns, which `ast` counts in UTF-8 bytes, into offsets."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = _LINE.findall(source)
        self._starts = [0, *accumulate(len(line) for line in self._lines)]

    def span(self, node: ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(
            node.end_lineno, node.end_col_offset
        )

    def text(self, node: ast.expr) -> str:
        begin, end = self.span(node)
        return self._source[begin:end]

    def inside(self, node: ast.Constant) -> int | None:
        """Tell where the text of a string begins; None if it is not written as it reads:
        escapes, several literals in a row."""
        begin, end = self.span(node)
        opening = _QUOTES.match(self._source, begin, end)
        if opening is None:
            return None
        inner = self._source[opening.end() : end - len(opening[1])]
        return opening.end() if inner == node.value else None

    def _offset(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        if not text.isascii():
            column = len(text.encode()[:column].decode())
        return self._starts[line - 1] + column
