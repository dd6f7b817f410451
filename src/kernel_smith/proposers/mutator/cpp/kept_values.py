"""Values that several loops over the same range compute: computed by the first, kept for the rest.

A normalisation after an activation, say, goes three times over a row, and torch.compile writes the
activation into each of the three loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.arithmetic import is_conditional
from kernel_smith.proposers.mutator.cpp.loops import (
    Loop,
    identifiers,
    innermost,
    places,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import Names, is_real, names_of, targets
from kernel_smith.proposers.mutator.cpp.text import CppText, cpp_edit, inside, replaced, walk
from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.records import content_hash

_MOST_ON_THE_STACK = 8192  # elements
_EXPENSIVE = re.compile(r"(?:^|::)(?:exp2?|expm1|log|log1p|log2|tanh|erfc?|sin|cos|pow)f?$")
_SHARES_WORK = re.compile(r"\b(?:for|parallel|task)\b")


@dataclass(frozen=True)
class _Value:
    """What an expression stands for, whatever its names are called."""

    meaning: str
    size: int = 1
    expensive: bool = False


@cpp_edit(
    "keep-values",
    "Compute what several loops over the same range compute in the first of them, and keep it for "
    "the others.",
)
def keep_values(text: CppText) -> Iterator[Site]:
    ranges: dict[tuple[int, str], list[tuple[str, Loop]]] = {}
    for place, loop in places(text):
        if innermost(loop) and (loop.start, loop.step) == ("0", "1") and not _shares_work(loop):
            ranges.setdefault((loop.function.id, loop.end), []).append((place, loop))
    for group in ranges.values():
        for number, (place, first) in enumerate(group):
            kept = _keep(text, first, [loop for _, loop in group[number + 1 :]])
            if kept:
                yield Site(place, kept)


def _shares_work(loop: Loop) -> bool:
    pragma = pragma_before(loop)
    return pragma is not None and _SHARES_WORK.search(loop.text.of(pragma)) is not None


def _keep(text: CppText, first: Loop, later: list[Loop]) -> tuple[Splice, ...] | None:
    names = names_of(text, first.function)
    own = [
        (node, value) for node, value in _values(names, first) if not is_conditional(node, first)
    ]
    followers = [loop for loop in later if _common_block(first, [loop]) is not None]
    elsewhere = [(loop, dict(_by_meaning(names, loop))) for loop in followers]
    for node, value in sorted(own, key=lambda each: each[1].size, reverse=True):
        kind = names.type_of(node)
        again = [(loop, found[value]) for loop, found in elsewhere if value in found]
        block = _common_block(first, [loop for loop, _ in again])
        if not value.expensive or not is_real(kind) or not again or block is None:
            continue
        if _reads_the_same(names, first, again, node):
            return _written(text, block, str(kind), first, node, again)
    return None


def _values(names: Names, loop: Loop) -> Iterator[tuple[Node, _Value]]:
    """Yield the expressions of a body that have a name, or call a function, and what they stand
    for."""
    reader = _Reader(names, loop)
    for node in walk(loop.body):
        computed = node if node.type == "call_expression" else None
        if node.type == "init_declarator":
            computed = node.child_by_field_name("value")
        value = reader.value(computed) if computed is not None else None
        if computed is not None and value is not None:
            yield computed, value


def _by_meaning(names: Names, loop: Loop) -> Iterator[tuple[_Value, Node]]:
    for node, value in reversed(list(_values(names, loop))):  # so that the first one counts
        yield value, node


class _Reader:
    """Replaces the local names in a loop's expressions by what they stand for."""

    def __init__(self, names: Names, loop: Loop) -> None:
        self._names = names
        self._loop = loop
        self._known: dict[int, _Value | None] = {}

    def value(self, node: Node) -> _Value | None:
        """None: it is not the same whenever it is asked for."""
        if node.type == "identifier":
            return self._of_name(node)
        if not node.named_children:
            return _Value(self._names.text.of(node))
        if node.type in ("assignment_expression", "update_expression", "lambda_expression"):
            return None
        if node.id not in self._known:  # a name that is used twice is read once
            self._known[node.id] = self._of_parts(node)
        return self._known[node.id]

    def _of_parts(self, node: Node) -> _Value | None:
        parts, size, expensive = [], 1, False
        function = node.child_by_field_name("function")
        for child in node.children:
            if child.type == "comment":
                continue
            called = function is not None and child == function
            value = _Value(self._names.text.of(child)) if called else self.value(child)
            if value is None:
                return None
            costly = called and _EXPENSIVE.search(value.meaning) is not None
            expensive |= value.expensive or costly
            parts.append(value.meaning)
            size += value.size
        # As a hash: texts double in length where a value is squared, and again where that is.
        return _Value(content_hash(*parts), size, expensive)

    def _of_name(self, node: Node) -> _Value | None:
        name = self._names.text.of(node)
        declared = self._names.lookup(name, node)
        if name == self._loop.variable:
            return _Value("#")
        if declared is None:
            return _Value(name)
        if not inside(declared.node, self._loop.node):
            return _Value(f"{name}@{declared.node.start_byte}")
        if declared.value is None or name in self._names.assigned:
            return None
        return self.value(declared.value)


def _common_block(first: Loop, others: list[Loop]) -> Node | None:
    """Return the innermost block that runs all of these loops once, one after the other."""
    above = [_blocks(loop) for loop in (first, *others)]
    return next((b for b in above[0] if all(b in each for each in above[1:])), None)


def _blocks(loop: Loop) -> list[Node]:
    found, node = [], loop.node.parent
    while node is not None and node.type == "compound_statement":
        found.append(node)
        node = node.parent
    return found


def _reads_the_same(names: Names, first: Loop, again: list[tuple[Loop, Node]], node: Node) -> bool:
    """Does nothing between the loops, or in them, write to what the value is made of?"""
    begin, end = first.node.start_byte, again[-1][0].node.end_byte
    counters = {loop.variable for loop in (first, *(loop for loop, _ in again))}
    read = _origins(names, identifiers(names.text.of(node)), node) - counters
    for target in targets(names.function):
        if begin <= target.start_byte < end:
            base = target.child_by_field_name("argument") or target
            if _origins(names, identifiers(names.text.of(base)), target) & read:
                return False
    calls = [n for n in walk(names.function) if n.type == "call_expression"]
    return not any(_may_write(names, call) for call in calls if begin <= call.start_byte < end)


def _origins(names: Names, found: set[str], at: Node) -> set[str]:
    """Names, and those that they were made of: a pointer into an array counts as the array."""
    known: set[str] = set()
    while found:
        name = found.pop()
        known.add(name)
        declared = names.lookup(name, at)
        if declared is not None and declared.value is not None:
            found |= identifiers(names.text.of(declared.value)) - known
    return known


def _may_write(names: Names, call: Node) -> bool:
    arguments = call.child_by_field_name("arguments")
    for each in arguments.named_children if arguments is not None else ():
        declared = names.lookup(names.text.of(each), each) if each.type == "identifier" else None
        if each.type == "pointer_expression" or (declared and declared.kind != "plain"):
            return True
    return False


def _written(
    text: CppText, block: Node, kind: str, first: Loop, node: Node, again: list[tuple[Loop, Node]]
) -> tuple[Splice, ...] | None:
    name = "kept_row"
    ahead = next(child for child in block.named_children if inside(first.node, child))
    if ahead.id == first.node.id:
        ahead = pragma_before(first) or ahead
    literal = re.fullmatch(r"(\d+)[uUlL]*", first.end)
    if name in text.of(first.function) or (literal and int(literal[1]) > _MOST_ON_THE_STACK):
        return None
    buffer = f"{kind} {name}[{first.end}];"
    if not literal:
        buffer = f"std::vector<{kind}> {name}({first.end});"
    at = f"{name}[{first.variable}]"
    splices = [
        *(text.include("vector") if not literal else ()),
        *text.before(ahead, buffer),
        replaced(node, f"({at} = {text.of(node)})"),
    ]
    for loop, other in again:
        splices += [replaced(other, f"{name}[{loop.variable}]"), *_unused(text, loop, other)]
    return tuple(splices)


def _unused(text: CppText, loop: Loop, gone: Node) -> list[Splice]:
    """Take out the names that nobody asks for once an expression is gone."""
    names = names_of(text, loop.function)
    gone_parts = [gone]
    waiting = [d for d in names.declared_in(loop.body) if d.value is not None and d.value != gone]
    found = []
    for declared in reversed(waiting):  # a name is used after its declaration
        uses = [
            node
            for node in walk(loop.body)
            if node.type == "identifier"
            and text.of(node) == declared.name
            and not inside(node, declared.node)
            and not any(inside(node, part) for part in gone_parts)
        ]
        if not uses and declared.name not in names.assigned:
            gone_parts.append(declared.node)
            found.append(_without(text, declared.node))
    return found


def _without(text: CppText, node: Node) -> Splice:
    """A statement out of the text, with its line where it stands alone."""
    line = text.data.rfind(b"\n", 0, node.start_byte)
    alone = not text.data[line + 1 : node.start_byte].strip()
    return Splice(line if alone and line >= 0 else node.start_byte, node.end_byte, "")
