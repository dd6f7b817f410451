"""Do different iterations of a loop touch different elements? An answer from the addresses.

An address is the sum that remains when local pointers and indices are replaced by what they stand
for. The loop's variable must occur in one term of it, as such or with a stride: `r * columns + c`
is a row of its own for each r, `i + j` is not an element of its own for each i if j runs as well.
That `c` stays below `columns` is taken for granted; the judge sees where it does not.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import Loop, loops
from kernel_smith.proposers.mutator.cpp.names import Names
from kernel_smith.proposers.mutator.cpp.text import CppText, inside, parse, walk

_DEPTH = 6


def resolve(names: Names, node: Node, loop: Loop, starts: bool = False, depth: int = 0) -> str:
    """Return an expression with its names replaced by their definitions.

    With `starts`, the variable of a loop inside `loop` is replaced by its first value and more.
    """
    text = names.text
    if node.type == "identifier":
        return _resolve_name(names, node, loop, starts, depth)
    if not node.children:
        return text.of(node)
    pieces, at = [], node.start_byte
    data = text.text.encode()
    for child in node.children:
        pieces.append(data[at : child.start_byte].decode())
        pieces.append(resolve(names, child, loop, starts, depth))
        at = child.end_byte
    return "".join(pieces)


def _resolve_name(names: Names, node: Node, loop: Loop, starts: bool, depth: int) -> str:
    name = names.text.of(node)
    declared = names.lookup(name, node)
    if name == loop.variable or declared is None or declared.value is None or depth > _DEPTH:
        return name
    if declared.scope.type == "for_statement":
        counting = any(x.node.id == declared.scope.id for x in loops(names.text))
        if not starts or not counting or not inside(declared.scope, loop.body):
            return name
        first = resolve(names, declared.value, loop, starts, depth + 1)
        return name if first.isdigit() else f"(({first}) + {name})"
    if name in names.assigned or declared.kind == "array" or declared.type.endswith(">"):
        return name
    if declared.value.type in ("argument_list", "initializer_list"):
        return name
    return f"({resolve(names, declared.value, loop, starts, depth + 1)})"


def parse_expression(expression: str) -> tuple[CppText, Node]:
    """Return an expression by itself; what cannot be read as one stays a text without terms."""
    text = parse(f"auto value = {expression};")
    declared = next((n for n in walk(text.root) if n.type == "init_declarator"), None)
    value = declared.child_by_field_name("value") if declared else None
    return text, value or text.root


def terms(node: Node) -> list[Node]:
    """Return what a sum adds or subtracts."""
    return _flattened(node, ("+", "-"))


def _flattened(node: Node, operators: tuple[str, ...]) -> list[Node]:
    if node.type == "parenthesized_expression" and node.named_children:
        inner = node.named_children[0]
        if inner.type in ("identifier", "number_literal", "parenthesized_expression"):
            return _flattened(inner, operators)
        operator = inner.child_by_field_name("operator")
        if inner.type == "binary_expression" and operator and operator.type in operators:
            return _flattened(inner, operators)
        return [inner] if inner.type == "binary_expression" else [node]
    operator = node.child_by_field_name("operator")
    if node.type == "binary_expression" and operator and operator.type in operators:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        assert left is not None and right is not None
        return _flattened(left, operators) + _flattened(right, operators)
    return [node]


def words(text: CppText, node: Node) -> set[str]:
    return {text.of(part) for part in walk(node) if part.type == "identifier"}


def key_of(expression: str, loop: Loop, moving: set[str]) -> str | None:
    """Return what tells the element of one iteration from those of others; None if nothing does.

    Two addresses with the same key that begins with `*` lie in the same stride of an iteration.
    Other keys are whole addresses. `moving` are the names that change within an iteration.
    """
    text, node = parse_expression(expression)
    variable = loop.variable
    strided = _separates(text, node, loop, moving)
    if strided is None:
        return None
    if not strided:
        return _plain(expression)
    own = [term for term in terms(node) if variable in words(text, term)]
    return "*" + _plain(text.of(own[0]))


def _separates(text: CppText, node: Node, loop: Loop, moving: set[str]) -> bool | None:
    """Whether the variable is in one term with a stride (True), as such (False) or otherwise."""
    added = terms(node)
    variable = loop.variable
    own = [term for term in added if variable in words(text, term)]
    if len(own) != 1:
        return None
    if own[0].type == "identifier":
        others = [term for term in added if term.id != own[0].id]
        apart = all(_keeps_apart(text, term, loop, moving) for term in others)
        return False if apart else None
    factors = _flattened(own[0], ("*",))
    with_it = [factor for factor in factors if variable in words(text, factor)]
    if len(factors) < 2 or len(with_it) != 1:
        return None
    if with_it[0].type in ("identifier", "binary_expression", "parenthesized_expression"):
        if with_it[0].id == own[0].id:
            return None
        below = _separates(text, with_it[0], loop, moving)
        return None if below is None else True
    return None


def _keeps_apart(text: CppText, term: Node, loop: Loop, moving: set[str]) -> bool:
    """A term beside the variable: it stays the same, or is a multiple of the variable's range."""
    if not words(text, term) & moving:
        return True
    factors = {_plain(text.of(factor)) for factor in _flattened(term, ("*",))}
    return loop.start == "0" and _plain(loop.end) in factors


def _plain(expression: str) -> str:
    return re.sub(r"\s+", "", expression)
