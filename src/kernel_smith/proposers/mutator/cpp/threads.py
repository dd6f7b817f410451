"""Edits that share work among threads."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.dependence import dependences, independent
from kernel_smith.proposers.mutator.cpp.loops import (
    Loop,
    enclosing,
    innermost,
    loops,
    places,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import names_of
from kernel_smith.proposers.mutator.cpp.text import (
    CppText,
    cpp_edit,
    inside,
    parse,
    replaced,
    walk,
)
from kernel_smith.proposers.mutator.edit import Site, Splice, splice


def reduction_clauses(reductions: dict[str, str]) -> str:
    return "".join(f" reduction({operator}:{name})" for name, operator in reductions.items())


def runs_in_threads(loop: Loop) -> bool:
    """Is the loop, or something around it, already shared among threads?"""
    above: Node | None = loop.node
    while above is not None:
        before = above.prev_named_sibling
        if before is not None and before.type == "preproc_call":
            line = loop.text.of(before)
            if "omp" in line and "simd" not in line.replace("for simd", ""):
                return True
        above = above.parent
    return False


@cpp_edit(
    "parallelise-loop", "Share the iterations of an independent loop among threads.", threads=True
)
def parallelise(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        around = enclosing(loop)
        worth = not around or (len(around) == 1 and not innermost(loop))
        reductions = dependences(loop) if worth else None
        if reductions is None or runs_in_threads(loop) or pragma_before(loop):
            continue
        line = f"#pragma omp parallel for{reduction_clauses(reductions)}"
        yield Site(place, text.before(loop.node, line))


@cpp_edit(
    "collapse-loops",
    "Share the iterations of two nested loops among threads as one range.",
    threads=True,
)
def collapse(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        inner = loop.perfect_inner()
        if inner is None or not independent(loop) or not independent(inner):
            continue
        pragma = pragma_before(loop)
        if pragma is None and not runs_in_threads(loop) and pragma_before(inner) is None:
            line = "#pragma omp parallel for collapse(2)"
            yield Site(place, text.before(loop.node, line))
        elif pragma is not None and text.of(pragma).strip() == "#pragma omp parallel for":
            yield Site(place, (_appended(text, pragma, " collapse(2)"),))


@cpp_edit(
    "schedule-loop", "Hand out the iterations of a threaded loop in smaller pieces.", threads=True
)
def schedule(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        pragma = pragma_before(loop)
        line = text.of(pragma) if pragma else ""
        if pragma is None or "omp" not in line or " for" not in line or "schedule" in line:
            continue
        for choice in ("dynamic", "dynamic, 8", "guided"):
            yield Site(place, (_appended(text, pragma, f" schedule({choice})"),), choice)


@cpp_edit(
    "private-buffer", "Give each iteration its own scratch buffer, then use threads.", threads=True
)
def private_buffer(text: CppText) -> Iterator[Site]:
    numbered = list(places(text))
    for position, (place, loop) in enumerate(numbered):
        if enclosing(loop) or pragma_before(loop) or loop.body.type != "compound_statement":
            continue
        buffers = list(_buffers(text, loop))
        if not buffers:
            continue
        moved = [replaced(node, "") for node in buffers]
        lines = "".join(f"\n{text.indent(loop.node)}    {text.of(node)}" for node in buffers)
        start = loop.body.start_byte + 1
        changed = [*moved, Splice(start, start, lines)]
        after = loops(parse(splice(text.text, changed)))
        if len(after) == len(numbered) and independent(after[position]):
            pragma = text.before(loop.node, "#pragma omp parallel for")
            yield Site(place, (*changed, *pragma))


def _buffers(text: CppText, loop: Loop) -> Iterator[Node]:
    """Vectors that are declared ahead of a loop, used in it alone, and written before read."""
    names = names_of(text, loop.function)
    for declared in names.declared_in(loop.function):
        if not declared.type.startswith("std::vector<") or declared.node.parent is None:
            continue
        ahead = declared.node.end_byte <= loop.node.start_byte
        if declared.node.parent != loop.node.parent or not ahead:
            continue
        uses = [n for n in walk(loop.function) if n.type == "identifier"]
        uses = [n for n in uses if text.of(n) == declared.name and not inside(n, declared.node)]
        within = uses and all(inside(n, loop.body) for n in uses)
        if within and _is_assigned(text, uses[0]):
            yield declared.node


def _is_assigned(text: CppText, name: Node) -> bool:
    """Is this the array in `array[index] = value`?"""
    element = name.parent
    assignment = element.parent if element else None
    if element is None or assignment is None or assignment.type != "assignment_expression":
        return False
    operator = assignment.child_by_field_name("operator")
    left = assignment.child_by_field_name("left")
    return left == element and operator is not None and text.of(operator) == "="


def _appended(text: CppText, pragma: Node, clause: str) -> Splice:
    end = pragma.start_byte + len(text.of(pragma).rstrip().encode())
    return Splice(end, end, clause)
