"""SEARCH/REPLACE blocks: finding them in an answer, and applying them to a program.

A block names the place by its content, not by line numbers:

    <<<<<<< SEARCH
    old lines
    =======
    new lines
    >>>>>>> REPLACE

Markers may be shorter, differ in case, say ORIGINAL and UPDATED, or be the tags <search> and
<replace>. Where the old lines differ from the program in white space alone, they still match.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

_SHOWN = 160
_LINES_COMPARED = 4000

Marker = Literal["search", "divider", "end", "tag-end", "replace"]

_MARKERS: tuple[tuple[Marker, re.Pattern[str]], ...] = (
    ("search", re.compile(r"(<{3,9}\s*(search|original|old)\b.*|<search>)", re.IGNORECASE)),
    ("divider", re.compile(r"={5,9}")),
    ("tag-end", re.compile(r"</search>", re.IGNORECASE)),
    ("replace", re.compile(r"<replace>", re.IGNORECASE)),
    ("end", re.compile(r"(>{3,9}\s*(replace|updated|new)\b.*|>{5,9}|</replace>)", re.IGNORECASE)),
)


class EditRefused(Exception):
    """A block is not complete, or does not match. The message goes back to the model."""


@dataclass(frozen=True)
class Edit:
    search: tuple[str, ...]
    replace: tuple[str, ...]


def has_edits(text: str) -> bool:
    return any(_marker(line) == "search" for line in text.splitlines())


def find_edits(text: str) -> list[Edit]:
    """Return the blocks of an answer, in order. Raises `EditRefused` for one that is not
    complete."""
    edits: list[Edit] = []
    search: list[str] = []
    replace: list[str] = []
    state: Literal["outside", "search", "between", "replace"] = "outside"
    for line in text.splitlines():
        marker = _marker(line)
        if marker == "search":
            if state != "outside":
                raise EditRefused(f"Block {len(edits) + 1} is not closed before the next begins.")
            search, replace, state = [], [], "search"
        elif state == "search" and marker == "divider":
            state = "replace"
        elif state == "search" and marker == "tag-end":
            state = "between"
        elif state == "between" and marker in ("replace", "divider"):
            state = "replace"
        elif state == "replace" and marker == "end":
            edits.append(Edit(tuple(search), tuple(replace)))
            state = "outside"
        elif state == "search":
            search.append(line)
        elif state == "replace" and marker != "replace":
            replace.append(line)
    if state != "outside":
        raise EditRefused(f"Block {len(edits) + 1} is not closed: its end marker is missing.")
    return edits


def apply_edits(source: str, edits: list[Edit]) -> str:
    """Return the program after all blocks, one after the other. Raises `EditRefused`."""
    lines = source.splitlines()
    for number, edit in enumerate(edits, 1):
        search, replace = _without_outer_blanks(edit)
        if not search:
            raise EditRefused(f"The SEARCH part of block {number} is empty.")
        start, shift = _locate(lines, search, number)
        lines[start : start + len(search)] = [_shifted(line, shift) for line in replace]
    return "\n".join(lines) + "\n"


def _without_outer_blanks(edit: Edit) -> tuple[list[str], list[str]]:
    """Empty lines around a block's text are the model's layout; those inside are the program's."""
    parts = []
    for part in (edit.search, edit.replace):
        lines = list(part)
        while lines and not lines[0].strip():
            lines.pop(0)
        while lines and not lines[-1].strip():
            lines.pop()
        parts.append(lines)
    return parts[0], parts[1]


def _locate(lines: list[str], search: list[str], number: int) -> tuple[int, str]:
    """Tell where the search lines are, and what the replacement must be indented by: `+ ` or `- `.

    Ever more tolerant comparisons are tried until one finds something.
    """
    views: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip, _squeezed)
    for view in views:
        wanted = [view(line) for line in search]
        places = list(_places([view(line) for line in lines], wanted))
        if len(places) > 1:
            where = ", ".join(str(place + 1) for place in places[:5])
            raise EditRefused(
                f"The SEARCH part of block {number} matches {len(places)} places (lines {where}). "
                "Include more lines around the one that is meant."
            )
        if places:
            return places[0], _shift(lines[places[0]], search[0])
    raise EditRefused(_no_match(lines, search, number))


def _places(lines: list[str], wanted: list[str]) -> Iterator[int]:
    for start in range(len(lines) - len(wanted) + 1):
        if lines[start] == wanted[0] and lines[start : start + len(wanted)] == wanted:
            yield start


def _shift(found: str, written: str) -> str:
    """Tell how the program's indentation differs from the block's."""
    there, here = _indent(found), _indent(written)
    if there.startswith(here):
        return "+" + there[len(here) :]
    if here.startswith(there):
        return "-" + here[len(there) :]
    return "+"


def _shifted(line: str, shift: str) -> str:
    sign, amount = shift[0], shift[1:]
    if not line.strip():
        return line
    return amount + line if sign == "+" else line.removeprefix(amount)


def _no_match(lines: list[str], search: list[str], number: int) -> str:
    """Says which line is the first that the program does not have, and what comes closest."""
    known = {_squeezed(line) for line in lines}
    unknown = next((line for line in search if _squeezed(line) not in known), None)
    if unknown is None:
        return (
            f"The SEARCH part of block {number} matches nowhere: its lines exist, but not in this "
            "order, without others between them. Copy them from the program exactly."
        )
    wanted = unknown.strip()[:_SHOWN]
    pool = [line.strip()[:_SHOWN] for line in lines[:_LINES_COMPARED] if line.strip()]
    close = difflib.get_close_matches(wanted, pool, n=1, cutoff=0.6)
    closest = f" The closest line is `{close[0]}`." if close else ""
    return (
        f"The SEARCH part of block {number} matches nowhere: the program has no line "
        f"`{wanted}`.{closest} Copy the lines from the program exactly."
    )


def _marker(line: str) -> Marker | None:
    stripped = line.strip()
    if not stripped or stripped[0] not in "<=>":
        return None
    return next((name for name, pattern in _MARKERS if pattern.fullmatch(stripped)), None)


def _squeezed(line: str) -> str:
    return " ".join(line.split())


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
