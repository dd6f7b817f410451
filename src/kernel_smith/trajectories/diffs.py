"""The change from one program to the next as SEARCH/REPLACE blocks.

The counterpart of `proposers.model.edits`, which finds such blocks in a model's answer and applies
them. Every SEARCH part occurs exactly once in the program, with as few lines around the change as
that takes.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_smith.proposers.model.edits import Edit, apply_edits

# Three lines of markers around a block cost more than a few lines that stay the same.
_NEAR = 3


@dataclass(frozen=True)
class _Hunk:
    """Lines `start:end` of the old program that become lines `new_start:new_end` of the new."""

    start: int
    end: int
    new_start: int
    new_end: int


def edits_between(old: str, new: str) -> list[Edit] | None:
    """Blocks that turn `old` into `new`, up to blank space at its end. None: there are none.

    Blocks cannot say everything: blank lines at the start of a file have no neighbour to name.
    """
    change = _Change(old.splitlines(), new.splitlines())
    hunks = change.hunks()
    if hunks is None:
        return None
    edits = [change.edit(hunk) for hunk in hunks]
    return edits if apply_edits(old, edits).rstrip() == new.rstrip() else None


def render_edits(edits: Sequence[Edit]) -> str:
    """The blocks in the form that a model is asked for."""
    return "\n\n".join(
        "\n".join(
            ("<<<<<<< SEARCH", *edit.search, "=======", *edit.replace, ">>>>>>> REPLACE"),
        )
        for edit in edits
    )


class _Change:
    """Where two programs differ, in pieces that can be found by their content."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._old = old
        self._new = new

    def edit(self, hunk: _Hunk) -> Edit:
        return Edit(
            tuple(self._old[hunk.start : hunk.end]),
            tuple(self._new[hunk.new_start : hunk.new_end]),
        )

    def hunks(self) -> list[_Hunk] | None:
        """From top to bottom, none of them next to another."""
        done: list[_Hunk] = []
        waiting = self._differences()[::-1]
        while waiting:
            hunk = waiting.pop()
            while not self._is_clear(hunk):
                grown = self._grown(hunk, done, waiting)
                if grown is None:
                    return None
                hunk = grown
            done.append(hunk)
        return done

    def _differences(self) -> list[_Hunk]:
        """Those that are close to each other count as one."""
        matcher = difflib.SequenceMatcher(None, self._old, self._new, autojunk=False)
        found: list[_Hunk] = []
        for kind, start, end, new_start, new_end in matcher.get_opcodes():
            if kind == "equal":
                continue
            if found and start - found[-1].end < _NEAR:
                last = found.pop()
                start, new_start = last.start, last.new_start
            found.append(_Hunk(start, end, new_start, new_end))
        return found

    def _is_clear(self, hunk: _Hunk) -> bool:
        """Can the old lines be found, and are the new ones taken as they stand?

        Blank lines around a block's parts are not looked at, so neither part may begin or end
        with one. Blocks are applied in order: those above have changed the text already.
        """
        edit = self.edit(hunk)
        if not edit.search or not _bounded(edit.search) or not _bounded(edit.replace):
            return False
        changed = self._new[: hunk.new_start] + self._old[hunk.start :]
        return _occurs_once(edit.search, self._old) and _occurs_once(edit.search, changed)

    def _grown(self, hunk: _Hunk, above: list[_Hunk], below: list[_Hunk]) -> _Hunk | None:
        """With a line more on the side that has fewer; with a neighbour where it touches one."""
        if above and above[-1].end == hunk.start:
            last = above.pop()
            return _Hunk(last.start, hunk.end, last.new_start, hunk.new_end)
        if below and below[-1].start == hunk.end:
            following = below.pop()
            return _Hunk(hunk.start, following.end, hunk.new_start, following.new_end)
        up = hunk.start > 0
        down = hunk.end < len(self._old)
        if up and (not down or self._context_above(hunk) <= self._context_below(hunk)):
            return _Hunk(hunk.start - 1, hunk.end, hunk.new_start - 1, hunk.new_end)
        if down:
            return _Hunk(hunk.start, hunk.end + 1, hunk.new_start, hunk.new_end + 1)
        return None

    def _context_above(self, hunk: _Hunk) -> int:
        edit = self.edit(hunk)
        return _common(edit.search, edit.replace)

    def _context_below(self, hunk: _Hunk) -> int:
        edit = self.edit(hunk)
        return _common(edit.search[::-1], edit.replace[::-1])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _bounded(lines: Sequence[str]) -> bool:
    return not lines or bool(lines[0].strip() and lines[-1].strip())


def _occurs_once(wanted: Sequence[str], lines: Sequence[str]) -> bool:
    count = len(wanted)
    places = (
        start
        for start in range(len(lines) - count + 1)
        if lines[start] == wanted[0] and tuple(lines[start : start + count]) == wanted
    )
    return next(places, None) is not None and next(places, None) is None
