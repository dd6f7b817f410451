"""Counting loops in a C++ text: variable, range, body, neighbours, and pragmas ahead of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.text import CppText, inside, walk


@dataclass(frozen=True, eq=False)
class Loop:
    """`for (type variable = start; variable < end; variable += step) body`."""

    text: CppText
    node: Node
    type: str
    variable: str
    start: str
    end: str
    step: str
    body: Node

    @property
    def statements(self) -> list[Node]:
        """The statements of the body, without comments."""
        if self.body.type != "compound_statement":
            return [self.body]
        return [child for child in self.body.named_children if child.type != "comment"]

    @property
    def function(self) -> Node:
        node = self.node
        while node.parent is not None and node.type != "function_definition":
            node = node.parent
        return node

    @property
    def place(self) -> str:
        return f"loop over {self.variable} in {function_name(self.text, self.function)}"

    def header(self, variable: str = "", start: str = "", end: str = "", step: str = "") -> str:
        name, step = variable or self.variable, step or self.step
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        first, last = start or self.start, end or self.end
        return f"for ({self.type} {name} = {first}; {name} < {last}; {advance})"

    def inner(self) -> list[Loop]:
        """Return the loops directly below this one."""
        below = [loop for loop in loops(self.text) if inside(loop.node, self.body)]
        return [
            loop
            for loop in below
            if not any(other is not loop and inside(loop.node, other.body) for other in below)
        ]

    def perfect_inner(self) -> Loop | None:
        """Return the one loop that is all of the body, if its range does not depend on this one."""
        below = self.inner()
        if len(below) != 1 or [s.id for s in self.statements] != [below[0].node.id]:
            return None
        names = identifiers(f"{below[0].start} {below[0].end}")
        return below[0] if self.variable not in names else None


@lru_cache(maxsize=256)
def loops(text: CppText) -> tuple[Loop, ...]:
    """Return all counting loops of a text, outer ones first. Loops of any other form are left
    out."""
    found = (_read(text, node) for node in walk(text.root) if node.type == "for_statement")
    return tuple(loop for loop in found if loop is not None)


def places(text: CppText) -> Iterator[tuple[str, Loop]]:
    """Yield the loops with names that tell them apart."""
    seen: dict[str, int] = {}
    for loop in loops(text):
        seen[loop.place] = seen.get(loop.place, 0) + 1
        count = seen[loop.place]
        yield (f"{loop.place} no. {count}" if count > 1 else loop.place), loop


def pragma_before(loop: Loop) -> Node | None:
    """Return the pragma that applies to a loop."""
    node = loop.node.prev_named_sibling
    while node is not None and node.type == "comment":
        node = node.prev_named_sibling
    if node is None or node.type != "preproc_call" or "pragma" not in loop.text.of(node):
        return None
    return node


def enclosing(loop: Loop) -> list[Loop]:
    """Return the loops around a loop, outermost first."""
    around = loops(loop.text)
    return [
        other for other in around if other.node.id != loop.node.id and inside(loop.node, other.body)
    ]


def is_leftover(loop: Loop) -> bool:
    """Was the loop written by an edit that splits loops? Splitting it again only adds text."""
    made = ("_whole", "_block", "_lane", "_tile", "_quotient")
    return any(word.endswith(made) for word in (loop.variable, loop.start, loop.end))


def innermost(loop: Loop) -> bool:
    kinds = {"for_statement", "while_statement", "do_statement", "for_range_loop"}
    return not any(node.type in kinds for node in walk(loop.body))


def identifiers(expression: str) -> set[str]:
    """Return the words of an expression."""
    cleaned = "".join(c if c.isalnum() or c == "_" else " " for c in expression)
    return {word for word in cleaned.split() if not word[0].isdigit()}


def named_functions(text: CppText) -> Iterator[tuple[str, Node]]:
    """Yield the functions with names that tell overloads apart."""
    seen: dict[str, int] = {}
    for function in text.functions():
        name = function_name(text, function)
        seen[name] = seen.get(name, 0) + 1
        yield (f"{name} no. {seen[name]}" if seen[name] > 1 else name), function


def function_name(text: CppText, function: Node) -> str:
    for node in walk(function):
        if node.type == "function_declarator":
            name = node.child_by_field_name("declarator")
            return text.of(name) if name else "a function"
    return "a function"


def _read(text: CppText, node: Node) -> Loop | None:
    fields = [node.child_by_field_name(n) for n in ("initializer", "condition", "update", "body")]
    first, condition, update, body = fields
    if first is None or condition is None or update is None or body is None:
        return None
    began = _initialised(text, first)
    step = _step(text, update)
    left, right = condition.child_by_field_name("left"), condition.child_by_field_name("right")
    operator = condition.child_by_field_name("operator")
    if began is None or step is None or left is None or right is None or operator is None:
        return None
    type_name, variable, start = began
    sign = text.of(operator)
    if text.of(left) != variable or step[0] != variable or sign not in ("<", "<="):
        return None
    end = text.of(right) if sign == "<" else f"{text.of(right)} + 1"
    return Loop(text, node, type_name, variable, start, end, step[1], body)


def _initialised(text: CppText, node: Node) -> tuple[str, str, str] | None:
    declared = node.children_by_field_name("declarator")
    kind = node.child_by_field_name("type")
    if node.type != "declaration" or len(declared) != 1 or kind is None:
        return None
    name = declared[0].child_by_field_name("declarator")
    value = declared[0].child_by_field_name("value")
    if name is None or value is None or name.type != "identifier":
        return None
    return text.of(kind), text.of(name), text.of(value)


def _step(text: CppText, node: Node) -> tuple[str, str] | None:
    if node.type == "update_expression" and "++" in text.of(node):
        argument = node.child_by_field_name("argument")
        return (text.of(argument), "1") if argument else None
    if node.type == "assignment_expression":
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = node.child_by_field_name("operator")
        if left and right and operator and text.of(operator) == "+=":
            return text.of(left), text.of(right)
    return None
