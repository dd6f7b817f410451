"""Sums along a row in lanes: a value for each of a few vectors, and one out of all in the end.

    for x1: sum += x[x1 + n*x0];

as `omp simd reduction` keeps one vector, whose additions wait for one another, adds its elements up
one after the other, and takes what is left of the row one element at a time. With an array of sums
several vectors are under way, halves of the array are joined at once, and the rest of the row is
vectors, too.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from kernel_smith.proposers.seed.cpp_loops import Loop

_LANES = 64  # a few vectors, whatever the processor's are
_JOINED = {
    "+": "{0} = {0} + {1};",
    "*": "{0} = {0} * {1};",
    "|": "{0} = {0} | {1};",
    "largest": "{0} = max_propagate_nan({0}, {1});",
    "smallest": "{0} = min_propagate_nan({0}, {1});",
}
_NEUTRAL = {"+": "0", "*": "1", "|": "0"}  # of others a value may count twice


def in_lanes(kernel: str, loop: Loop, sums: Mapping[str, Sequence[str]]) -> str | None:
    """Return the text of a loop from zero; None where nothing is summed, or too little."""
    if not sums or int(loop.count) < 2 * _LANES:
        return None
    named = [(how, name) for how, names in sums.items() for name in names]
    types = [_type_of(name, kernel[: loop.begin]) for _, name in named]
    if None in types:
        return None
    declared = [
        f"{kind} {name}_of[{_LANES}];\n"
        f"std::fill_n({name}_of, {_LANES}, {kind}({_NEUTRAL.get(how, name)}));"
        for kind, (how, name) in zip(types, named, strict=True)
    ]
    joined = [
        _JOINED[how].format(name, f"in_one<{_LANES}>({name}_of, {_join(how)})")
        for how, name in named
    ]
    whole = int(loop.count) // _LANES * _LANES
    lines = [
        "{",
        *(f"    {line}" for text in declared for line in text.splitlines()),
        *_blocks(loop, whole, [name for _, name in named]),
        *(f"    {line}" for line in joined),
        "}",
    ]
    return textwrap.indent("\n".join(lines), loop.indent) + "\n"


def _blocks(loop: Loop, whole: int, names: Sequence[str]) -> list[str]:
    first = f"{loop.variable}_block"
    blocks = [
        f"    for(int64_t {first}=0; {first}<{whole}; {first}+={_LANES})",
        "    {",
        *(f"    {line}" for line in _some(loop, first, f"{first} + {_LANES}", names)),
        "    }",
    ]
    rest = _some(loop, str(whole), loop.count, names) if whole < int(loop.count) else []
    return blocks + rest


def _some(loop: Loop, first: str, end: str, names: Sequence[str]) -> list[str]:
    """Return a vector loop over as many elements as there are lanes, or fewer."""
    name = loop.variable
    body = textwrap.dedent(loop.body).splitlines()
    return [
        "    #pragma omp simd",
        f"    for(int64_t {name}={first}; {name}<{end}; {name}+=1)",
        f"    {body[0]}",
        *(f"        auto& {one} = {one}_of[{name} - {first}];" for one in names),
        *(f"    {line}" for line in body[1:]),
    ]


def _join(how: str) -> str:
    result = _JOINED[how].format("a", "b").removeprefix("a = ").removesuffix(";")
    return f"[](auto a, auto b) {{ return {result}; }}"


def _type_of(name: str, before: str) -> str | None:
    found = re.findall(rf"\b(float|double|int32_t) {name} = ", before)
    return found[-1] if found else None
