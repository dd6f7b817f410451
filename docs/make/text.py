"""Render Markdown: tables, code in cells, docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence

NOTE = "<!-- Made from the code by `python docs/make`. Change the code, not this page. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, and none for no rows."""
    body = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    if not body:
        return []
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *body, ""]


def code(text: str) -> str:
    """Return text as inline code."""
    return f"`{text}`" if text else ""


def prose(text: str | None) -> list[str]:
    """Return a docstring's lines, without the indentation that it has in the code."""
    return [*inspect.cleandoc(text).splitlines(), ""] if text else []


def joined(lines: Iterable[str]) -> str:
    """Return lines as the text of a page."""
    return "\n".join(lines).rstrip("\n") + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
