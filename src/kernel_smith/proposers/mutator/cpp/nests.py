"""Edits of loop nests: another order, tiles, and several iterations of an outer loop at once."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.dependence import dependences, independent
from kernel_smith.proposers.mutator.cpp.loops import (
    Loop,
    identifiers,
    is_leftover,
    loops,
    places,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import Declared, names_of
from kernel_smith.proposers.mutator.cpp.text import (
    CppText,
    cpp_edit,
    inside,
    replaced,
    rewritten,
    walk,
)
from kernel_smith.proposers.mutator.edit import Site, Splice


def free_nests(text: CppText) -> Iterator[tuple[str, Loop, Loop]]:
    """Pairs of loops of which each may run in any order."""
    for place, loop in places(text):
        inner = loop.perfect_inner()
        if inner is None or dependences(loop) is None or dependences(inner) is None:
            continue
        if pragma_before(inner) is None and not is_leftover(inner) and not is_leftover(loop):
            yield f"{place} and {inner.variable}", loop, inner


@cpp_edit("interchange-loops", "Swap two nested loops whose iterations may run in any order.")
def interchange(text: CppText) -> Iterator[Site]:
    for place, outer, inner in free_nests(text):
        new = f"{inner.header()} {{\n{text.indent(inner.node)}{outer.header()} "
        new += f"{text.of(inner.body)}\n{text.indent(outer.node)}}}"
        yield Site(place, (replaced(outer.node, new),))


@cpp_edit("tile-loops", "Walk two nested loops in tiles, so that what a tile reads stays in cache.")
def tile(text: CppText) -> Iterator[Site]:
    for place, outer, inner in free_nests(text):
        if inner.step != "1":
            continue
        block = f"{inner.variable}_tile"
        for size in (16, 64, 256):
            end = f"std::min<{inner.type}>({block} + {size}, {inner.end})"
            tiles = inner.header(variable=block, step=str(size))
            new = f"{tiles} {{\n{text.indent(outer.node)}{outer.header()} "
            new += f"{inner.header(start=block, end=end)} {text.of(inner.body)}\n"
            new += f"{text.indent(outer.node)}}}"
            splices = (*text.include("algorithm"), replaced(outer.node, new))
            yield Site(place, splices, f"{size} wide")


@cpp_edit(
    "jam-iterations",
    "Take several iterations of an outer loop through its inner loop together: what the inner loop "
    "loads is used for all of them, and neighbours are read side by side.",
)
def jam(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        plan = _plan(text, loop)
        if plan is None:
            continue
        for lanes in (4, 8, 16, 64):
            new = plan.written(lanes)
            yield Site(place, (replaced(loop.node, new),), f"{lanes} iterations")


class _Plan:
    """How a loop with one loop inside is jammed."""

    def __init__(self, text: CppText, loop: Loop, inner: Loop, names: list[Declared]) -> None:
        self.text, self.loop, self.inner = text, loop, inner
        self.repeated: list[Declared] = []
        self.kept: list[Declared] = []
        for declared in names:
            value = identifiers(text.of(declared.value)) if declared.value else set()
            again = _is_cheap(declared) and not value & {d.name for d in self.kept}
            (self.repeated if again else self.kept).append(declared)

    def written(self, lanes: int) -> str:
        loop, pad = self.loop, self.text.indent(self.loop.node)
        block = f"{loop.variable}_block"
        after = [s for s in loop.statements if s.start_byte > self.inner.node.end_byte]
        before = [s for s in loop.statements if s.end_byte <= self.inner.node.start_byte]
        before = [s for s in before if s.id not in {d.node.id for d in self.repeated}]
        lines = [f"{loop.header(variable=block, step=str(lanes))} {{"]
        lines.append(f"    if ({block} + {lanes} <= {loop.end}) {{")
        for declared in self.kept:
            lines.append(f"        {declared.type} {declared.name}_lanes[{lanes}];")
        lines += self._for_lanes(before, lanes)
        lines.append(f"        {self.inner.header()} {{")
        lines += [f"    {line}" for line in self._for_lanes([self.inner.body], lanes)]
        lines.append("        }")
        lines += self._for_lanes(after, lanes)
        tail = loop.header(start=block)
        lines += ["    } else {", f"        {tail} {self.text.of(loop.body)}", "    }", "}"]
        return f"\n{pad}".join(lines)

    def _for_lanes(self, statements: list[Node], lanes: int) -> list[str]:
        """Statements for every lane, with the variables that each lane keeps."""
        if not statements:
            return []
        loop = self.loop
        lane, v = f"{loop.variable}_lane", loop.variable
        lines = [f"        for ({loop.type} {lane} = 0; {lane} < {lanes}; ++{lane}) {{"]
        lines.append(f"            const {loop.type} {v} = {v}_block + {lane};")
        lines += [f"            {self.text.of(d.node)}" for d in self.repeated]
        lines += [f"            {self._in_lane(s)}" for s in statements]
        return [*lines, "        }"]

    def _in_lane(self, statement: Node) -> str:
        lane = f"{self.loop.variable}_lane"
        own = {d.name: f"{d.name}_lanes[{lane}]" for d in self.kept}
        for declared in self.kept:
            if declared.node.id == statement.id:
                if declared.value is None:
                    return ";"
                value = rewritten(self.text, declared.value, self._renamings(declared.value, own))
                return f"{own[declared.name]} = {value};"
        return rewritten(self.text, statement, self._renamings(statement, own))

    def _renamings(self, node: Node, own: dict[str, str]) -> list[Splice]:
        found = [n for n in walk(node) if n.type == "identifier" and self.text.of(n) in own]
        return [replaced(n, own[self.text.of(n)]) for n in found]


def _plan(text: CppText, loop: Loop) -> _Plan | None:
    below = loop.inner()
    all_loops = [n for n in loop.statements if n.type == "for_statement"]
    if len(below) != 1 or len(all_loops) != 1 or below[0].node.id != all_loops[0].id:
        return None
    inner = below[0]
    if loop.step != "1" or is_leftover(loop) or pragma_before(inner) or not independent(loop):
        return None
    if any(other.variable == loop.variable for other in _below(loop)) or _continues(loop, inner):
        return None
    names = names_of(text, loop.function)
    own = [d for d in names.declared_in(loop.body) if not inside(d.node, inner.node)]
    varying = {loop.variable} | {d.name for d in own}
    if identifiers(f"{inner.start} {inner.end}") & varying:
        return None
    if any(not _can_keep(text, d, loop) for d in own):
        return None
    shadowed = {d.name for d in names.declared_in(inner.node)} & varying
    plan = _Plan(text, loop, inner, own)
    if any(d.type not in _KEPT or d.kind != "plain" for d in plan.kept):
        return None
    return plan if not shadowed and (own or len(loop.statements) > 1) else None


def _below(loop: Loop) -> list[Loop]:
    return [other for other in loops(loop.text) if inside(other.node, loop.body)]


def _continues(loop: Loop, inner: Loop) -> bool:
    found = [n for n in walk(loop.body) if n.type == "continue_statement"]
    return any(not inside(n, inner.node) for n in found)


def _is_cheap(declared: Declared) -> bool:
    """Is a variable better computed again than kept for each lane?"""
    real = declared.type in ("float", "double")
    return (
        declared.constant
        and declared.value is not None
        and (declared.kind == "pointer" or not real)
    )


def _can_keep(text: CppText, declared: Declared, loop: Loop) -> bool:
    alone = len(declared.node.children_by_field_name("declarator")) == 1
    direct = declared.node.parent is not None and declared.node.parent.id == loop.body.id
    return alone and direct and "&" not in text.of(declared.node).partition("=")[0]


_KEPT = {"float", "double", "int", "int32_t", "int64_t", "Element", "T", "scalar_t"}
