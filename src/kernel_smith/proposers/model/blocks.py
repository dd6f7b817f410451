"""The text of an answer, taken apart: thoughts removed, fenced code blocks found."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

_FENCE = re.compile(r"\s{0,8}(`{3,}|~{3,})(.*)")
_FILE = re.compile(r"([\w-]+)\.py\b")
_THOUGHTS = ("think", "thinking", "thought")


@dataclass(frozen=True)
class Block:
    """A fenced block. `file` is the module it is said to be, if any."""

    code: str
    closed: bool
    file: str | None = None


def without_thoughts(text: str) -> str:
    """Return the answer without what the model thought aloud.

    Some servers cut the opening tag off, and a thought that never ends hides all that follows it.
    """
    for name in _THOUGHTS:
        opening, closing = f"<{name}>", f"</{name}>"
        if not _comes_first(text, opening, closing):
            text = text.partition(closing)[2]
        while (start := text.find(opening)) >= 0:
            end = text.find(closing, start)
            text = text[:start] + (text[end + len(closing) :] if end >= 0 else "")
    return text


def _comes_first(text: str, opening: str, closing: str) -> bool:
    start, end = text.find(opening), text.find(closing)
    return end < 0 or 0 <= start < end


def find_blocks(text: str) -> tuple[list[Block], str]:
    """Return the fenced blocks with any tag, in order, and the prose around them."""
    blocks: list[Block] = []
    prose: list[str] = []
    inside: list[str] = []
    fence, file = "", None
    for line in text.splitlines():
        match = _FENCE.fullmatch(line)
        if fence:
            if match and _closes(match, fence):
                blocks.append(Block(_code(inside), True, file))
                fence = ""
            else:
                inside.append(line)
        elif match and "`" not in match[2]:
            before = next((said for said in reversed(prose) if said.strip()), "")
            named = _FILE.search(match[2]) or _FILE.search(before[-120:])
            fence, file, inside = match[1], named[1] if named else None, []
        else:
            prose.append(line)
    if fence:
        blocks.append(Block(_code(inside), False, file))
    return blocks, "\n".join(prose)


def _code(lines: list[str]) -> str:
    """A block inside a list is indented as a whole."""
    code = "\n".join(lines) + "\n"
    return textwrap.dedent(code) if code[0].isspace() else code


def _closes(match: re.Match[str], fence: str) -> bool:
    return match[1][0] == fence[0] and len(match[1]) >= len(fence) and not match[2].strip()
