"""Halves as floats in a buffer: converted by the processor, which g++ makes no vectors of.

    for x1: y[x1 + n*x0] = half(f(float(x[x1 + n*x0])));

becomes

    widen(x + n*x0, x_wide, n);
    for x1: y_wide[x1] = f(x_wide[x1]);
    narrow(y_wide, y + n*x0, n);
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kernel_smith.proposers.seed.cpp_loops import Loop

_POINTER = re.compile(r"\bat::Half\* (\w+)")
_ALIAS = re.compile(r"^ *auto (\w+) = (\w+);$", re.MULTILINE)
_ACCESS = re.compile(r"\b(\w+)\[([^\[\]]*)\](?= = (\w+);)|\b(\w+)\[([^\[\]]*)\]")
_ROUNDED = re.compile(r"\bauto (\w+) = c10::convert<at::Half>\((\w+)\);")


@dataclass(frozen=True)
class Buffered:
    """A loop over buffers, and the lines that fill them before it and empty them after it."""

    loop: Loop
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        return bool(self.before)

    def around(self, text: str, indent: str) -> str:
        """Return what the loop was made into, between these lines."""
        before = "".join(f"{indent}{line}\n" for line in self.before)
        after = "".join(f"{indent}{line}\n" for line in self.after)
        return before + text + after


def through_floats(kernel: str, loop: Loop, size: str, first: str, count: str) -> Buffered:
    """Return the loop with a buffer of `size` floats for each row of halves that it walks along.

    It is to work on `count` elements, from the element `first` on.
    """
    halves = set(_POINTER.findall(kernel))
    halves |= {alias for alias, name in _ALIAS.findall(kernel) if name in halves}
    buffers: dict[tuple[str, str, bool], str] = {}

    def in_buffer(found: re.Match[str]) -> str:
        stored = found[1] is not None
        name, place = (found[1], found[2]) if stored else (found[4], found[5])
        if name not in halves or not re.search(rf"\b{loop.variable}\b", place):
            return found[0]
        known = f"{name}_{'rounded' if stored else 'wide'}"
        same = sum(one.startswith(known) for one in buffers.values())
        buffer = buffers.setdefault((name, place, stored), f"{known}_{same}" if same else known)
        return f"{buffer}[{loop.variable}{'' if first == '0' else f' - {first}'}]"

    body = _ACCESS.sub(in_buffer, loop.body)
    if not buffers or "decltype" in body:
        return Buffered(loop)
    before, after = [f"float {buffer}[{size}];" for buffer in buffers.values()], []
    for (name, place, stored), buffer in buffers.items():
        start = re.sub(rf"\b{loop.variable}\b", first, place).removeprefix("0 + ")
        row = f"{name} + ({start})"
        if stored:
            after.append(f"narrow({buffer}, {row}, {count});")
        else:
            before.append(f"widen({row}, {buffer}, {count});")
    return Buffered(replace(loop, body=_unrounded(body)), tuple(before), tuple(after))


def _unrounded(body: str) -> str:
    """Without roundings whose results are only stored: `narrow` rounds them."""
    for found in _ROUNDED.finditer(body):
        uses = len(re.findall(rf"\b{found[1]}\b", body)) - 1
        if uses == len(re.findall(rf"_rounded\w*\[[^\]]*\] = {found[1]};", body)):
            body = body.replace(found[0], f"auto {found[1]} = {found[2]};")
    return body
