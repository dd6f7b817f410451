"""Sums of columns side by side: row by row, so that memory is read in the order in which it lies.

    for x0: sum = 0; for x1: sum += x[x0 + n*x1]; y[x0] = sum;

goes through all of the memory once for each vector of columns, and each addition waits for the one
before. With an array of sums for a block of columns, the loop over rows is the outer one.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import replace

from kernel_smith.proposers.seed.cpp_loops import Loop, loops_of

_BLOCK = 64  # columns that are added up at once: a few vectors, which stay in registers
_DECLARED = re.compile(r"^\s*(?P<type>float|double|int32_t) (?P<name>\w+) = (?P<value>[^;]+);$")
_STORED = re.compile(r"^\s*\w+\[.*\] .?= ")

# What the compiler writes around a loop over rows to share it out among threads, column by column.
_SHARED = re.compile(
    r"^ *int max_threads = .*\n"
    r"(?: *\w+ \w+_arr\[max_threads\];\n)+"
    r" *for \(int i = 0; .*\n *\{\n(?: *\w+_arr\[i\] = .*\n)+ *\}\n"
    r" *#pragma omp parallel\n *\{\n *int tid = .*\n",
    re.MULTILINE,
)
_SHARED_LOOP = re.compile(r"^ *#pragma omp for\n", re.MULTILINE)
_JOINED = re.compile(
    r"^(?: *\w+_arr\[tid\] = \w+_local;\n)+ *\}\n"
    r" *for \(int tid = 0; .*\n *\{\n(?P<added>(?: *\w+ = .*;\n)+) *\}\n",
    re.MULTILINE,
)


def by_one_thread(around: Loop) -> Loop:
    """Return the same loop over columns where threads do not share out the rows of each:
    together they would go through all of the memory once for each column, and one thread does so
    once in all."""

    def added(found: re.Match[str]) -> str:
        return found["added"].replace("_arr[tid]", "_local")

    body, shared = _SHARED.subn("", around.body)
    body, joined = _JOINED.subn(added, body)
    return replace(around, body=_SHARED_LOOP.sub("", body)) if shared == joined == 1 else around


def side_by_side(around: Loop, sums: Collection[str]) -> str | None:
    """Return the text of a loop over columns, by blocks, with the loop over rows inside of each.

    None where there is more to it than adding up and then writing.
    """
    ((rows),) = loops_of(around.body)
    before = [line for line in around.body[: rows.begin].splitlines() if line.strip() != "{"]
    after = [line for line in around.body[rows.end :].splitlines() if line.strip() != "}"]
    declared = [found for found in map(_DECLARED.match, before) if found and found["name"] in sums]
    others = [line for line in before if line not in [found.string for found in declared]]
    stores = any(_STORED.match(line) for line in others)
    is_plain = not stores and not re.search(r"[{}#]", "".join([*before, *after]))
    if len(declared) != len(sums) or not is_plain:
        return None
    name, count = around.variable, around.count
    each = f"for(int64_t {name}={name}_block; {name}<{name}_end; {name}+=1)"
    place = f"_of[{name} - {name}_block]"
    named = [f"auto& {one['name']} = {one['name']}{place};" for one in declared]
    lines = [
        f"for(int64_t {name}_block=0; {name}_block<{count}; {name}_block+={_BLOCK})",
        "{",
        f"    const int64_t {name}_end = std::min<int64_t>({name}_block + {_BLOCK}, {count});",
        *(f"    {one['type']} {one['name']}_of[{_BLOCK}];" for one in declared),
        *_nest(each, others, [f"{one['name']}{place} = {one['value']};" for one in declared]),
        f"    for(int64_t {rows.variable}=0; {rows.variable}<{rows.count}; {rows.variable}+=1)",
        "    {",
        *(f"    {line}" for line in _nest(each, others, named, rows.body.splitlines()[1:-1])),
        "    }",
        *_nest(each, others, named, after),
        "}",
    ]
    return textwrap.indent("\n".join(lines), around.indent) + "\n"


def _nest(loop: str, *parts: Sequence[str]) -> list[str]:
    """Return a loop as vectors over statements that come from different depths of the text."""
    text = "\n".join(textwrap.dedent("\n".join(part)) for part in parts if part)
    body = textwrap.indent(text, " " * 8).splitlines()
    return ["    #pragma omp simd", f"    {loop}", "    {", *body, "    }"]
