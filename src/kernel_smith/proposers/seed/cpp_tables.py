"""Loops that load from places which they compute, as enlarging an image does.

    for x0: for x1: i = place(x1); y[x1 + n*x0] = x[i + m*x0] + ...;

computes the same places for each row, and g++ makes vectors of it that gather what they load, which
takes processors longer than as many loads. Here what depends on x1 alone stands in a table, made
once in a call, what is the same for the row is computed before it, and the loads stay apart.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kernel_smith.proposers.seed.cpp_loops import NO_CONFLICT, Loop

_MOST = 4096  # entries of a table
_NAME = re.compile(r"\btmp\d+\b")
_STATEMENT = re.compile(r"^ *auto (tmp\d+) = (.*);$")
_STORE = re.compile(r"^ *\w+\[[^\]]*\] = \w+;$")
_LOAD = re.compile(r"^\w+\[([^\[\]]*)\]$")
_FUNCTION = re.compile(r"\b(?:std|branchless)::(?!numeric_limits|min|max)")  # better in vectors
_ELSEWHERE = re.compile(r"\[|\b(?:x\d+|\w*ptr\d+|\w*acc\w*|ks\d+)\b")
_TYPED = re.compile(r"^(?:c10::convert<(\w+)>|static_cast<(\w+)>|(float|double|int64_t|int32_t))\(")
_SAME_TYPE = re.compile(r"^(?:max|min)_propagate_nan\((tmp\d+), tmp\d+\)$")


def with_tables(kernel: str, loop: Loop) -> str | None:
    """Return the kernel with tables for an inner loop; None where it loads from no such places."""
    body = _Body.read(loop)
    if body is None or int(loop.count) > _MOST or not body.places or _FUNCTION.search(loop.body):
        return None
    types = {name: body.type_of(name) for name in body.needed}
    if not types or None in types.values() or f"_by_{loop.variable}[" in kernel:
        return None
    start = kernel.index("{\n") + 2
    before = NO_CONFLICT.sub("", kernel[start : loop.begin])
    return "".join([kernel[:start], _filled(body, types), before, _row(body), kernel[loop.end :]])


@dataclass(frozen=True)
class _Body:
    """The statements of a loop, and the values that they give names."""

    loop: Loop
    lines: list[str]
    values: dict[str, str]

    @classmethod
    def read(cls, loop: Loop) -> _Body | None:
        lines = [line.strip() for line in loop.body.splitlines() if line.strip() not in "{}"]
        if not all(_STATEMENT.match(line) or _STORE.match(line) for line in lines):
            return None
        found = (_STATEMENT.match(line) for line in lines)
        return cls(loop, lines, {one[1]: one[2] for one in found if one})

    @cached_property
    def varying(self) -> set[str]:
        """What differs from one iteration to the next."""
        varying: set[str] = set()
        for name, value in self.values.items():
            if self._has_variable(value) or varying & _names(value):
                varying.add(name)
        return varying

    @cached_property
    def alone(self) -> set[str]:
        """What depends on the loop's variable alone, or on nothing."""
        return self._made_of(
            lambda value: not _ELSEWHERE.search(re.sub(rf"\b{self.loop.variable}\b", "", value))
        )

    @cached_property
    def same(self) -> set[str]:
        """What is the same in all iterations, and not loaded."""
        return self._made_of(lambda value: "[" not in value and not self._has_variable(value))

    @cached_property
    def places(self) -> set[str]:
        """Where something is loaded from, so that neighbours load from anywhere."""
        loads = filter(None, map(_LOAD.match, self.values.values()))
        return self.varying & set().union(*(_names(load[1]) for load in loads))

    @cached_property
    def needed(self) -> list[str]:
        """What stands in tables."""
        others = [line for line in self.lines if _name(line) not in self.alone]
        used = set().union(*map(_names, others))
        return [name for name in self.values if name in self.alone & self.varying & used]

    def type_of(self, name: str) -> str | None:
        value = self.values[name]
        if found := _TYPED.match(value):
            return found[1] or found[2] or found[3]
        if found := _SAME_TYPE.match(value):
            return self.type_of(found[1])
        if value == self.loop.variable:
            return "int64_t"
        return self.type_of(value) if value in self.values else None

    def _has_variable(self, value: str) -> bool:
        return re.search(rf"\b{self.loop.variable}\b", value) is not None

    def _made_of(self, fits: Callable[[str], bool]) -> set[str]:
        made: set[str] = set()
        for name, value in self.values.items():
            if fits(value) and _names(value) <= made:
                made.add(name)
        return made


def _filled(body: _Body, types: Mapping[str, str | None]) -> str:
    """Return the tables, and the loop that fills them."""
    loop = body.loop
    stores = [f"{_table(name, loop)}[{loop.variable}] = {name};" for name in types]
    lines = _used([*(line for line in body.lines if _name(line) in body.alone), *stores])
    declared = [f"{kind} {_table(name, loop)}[{loop.count}];" for name, kind in types.items()]
    text = "\n".join([*declared, loop.head, "{", *(f"    {line}" for line in lines), "}", ""])
    return textwrap.indent(text, "    ")


def _row(body: _Body) -> str:
    """Return the loop without what is in tables, after what is the same in all iterations."""
    loop = body.loop
    each = []
    for line in body.lines:
        name = _name(line)
        if name in body.needed:
            line = f"auto {name} = {_table(name, loop)}[{loop.variable}];"
        elif name in body.same or name in body.alone:
            continue
        each.append(re.sub(r" = (.*);", r" = apart(\1);", line) if name in body.places else line)
    before = _used([*(line for line in body.lines if _name(line) in body.same), *each])
    lines = [*before[: -len(each)], loop.head, "{", *(f"    {line}" for line in each), "}"]
    return textwrap.indent("\n".join(["{", *lines, "}", ""]), loop.indent)


def _used(lines: Sequence[str]) -> list[str]:
    """Without definitions that nothing after them needs."""
    kept: list[str] = []
    for line in reversed(lines):
        name = _name(line)
        if not name or any(name in _names(later) for later in kept):
            kept.append(line)
    return kept[::-1]


def _table(name: str, loop: Loop) -> str:
    return f"{name}_by_{loop.variable}"


def _name(line: str) -> str:
    found = _STATEMENT.match(line)
    return found[1] if found else ""


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))
