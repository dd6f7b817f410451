"""Loops in the text of Inductor's C++ kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOOP = re.compile(r"^( *)for\(int64_t (\w+)=0; \2<(\d+); \2\+=1\)\n", re.MULTILINE)
NO_CONFLICT = re.compile(r" *#pragma GCC ivdep\n\Z")  # a pragma of ours says as much


@dataclass(frozen=True)
class Loop:
    """`text[begin:end]` is the loop, without the pragma before it."""

    begin: int
    end: int
    variable: str
    count: str
    indent: str
    body: str

    @property
    def head(self) -> str:
        return f"for(int64_t {self.variable}=0; {self.variable}<{self.count}; {self.variable}+=1)"


def loops_of(text: str) -> list[Loop]:
    """Return all loops of a kernel, in the order in which they begin."""
    return [loop_at(text, found) for found in LOOP.finditer(text)]


def loop_at(text: str, found: re.Match[str]) -> Loop:
    """Its body stands in braces of the same indent."""
    indent, variable, count = found.groups()
    closing = f"\n{indent}}}\n"
    end = text.find(closing, found.end())
    end = len(text) if end < 0 else end + len(closing)
    return Loop(found.start(), end, variable, count, indent, text[found.end() : end])
