"""What the names in a C++ function stand for: declarations, scopes, and a guess at types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.text import CppText, inside, walk

_SCOPES = {"compound_statement", "for_statement", "function_definition", "for_range_loop"}
_NUMBERS = {"float", "double"}
# Functions that return the type of their widest argument.
_GENERIC = {
    *("exp", "log", "sqrt", "fabs", "abs", "pow", "tanh", "erf", "max", "min", "fmax", "fmin"),
    *("max_propagate_nan", "min_propagate_nan"),  # of seeds
}
_CAST = re.compile(r"(?:static_cast|c10::convert)<(?P<type>.*)>")


@dataclass(frozen=True, eq=False)
class Declared:
    """One declared name. `type` is without qualifiers and without the pointer's star."""

    name: str
    type: str
    kind: str  # plain, pointer, array
    constant: bool
    value: Node | None
    node: Node
    scope: Node


class Names:
    """The declarations of one function."""

    def __init__(self, text: CppText, function: Node) -> None:
        self.text = text
        self.function = function
        self._declared = list(_declarations(text, function))
        self._types: dict[Declared, str | None] = {}
        self.assigned = {text.of(target) for target in targets(function)}
        self.assigned |= {text.of(n) for n in addressed(function) if n.type == "identifier"}

    def lookup(self, name: str, at: Node) -> Declared | None:
        """Return the declaration that a name refers to at some place."""
        fitting = [d for d in self._declared if d.name == name and inside(at, d.scope)]
        fitting = [d for d in fitting if d.node.start_byte <= at.start_byte]
        return max(fitting, key=lambda d: d.node.start_byte, default=None)

    def declared_in(self, node: Node) -> list[Declared]:
        return [declared for declared in self._declared if inside(declared.node, node)]

    def type_of(self, node: Node) -> str | None:
        """`float` or `double` where an expression certainly is one of them."""
        kind = node.type
        text = self.text.of(node)
        if kind == "number_literal":
            is_real = "." in text or ("e" in text and not text.startswith("0x"))
            return ("float" if text.endswith(("f", "F")) else "double") if is_real else "int"
        if kind == "identifier":
            declared = self.lookup(text, node)
            if declared is None or declared.kind != "plain":
                return None
            return self._type_by_value(declared) if declared.type == "auto" else declared.type
        if kind == "subscript_expression":
            base = node.child_by_field_name("argument")
            found = self.lookup(self.text.of(base), base) if base else None
            return found.type.partition("<")[2].rstrip("> ") or found.type if found else None
        if kind == "call_expression":
            return self._type_of_call(node)
        if kind == "conditional_expression":
            parts = [node.child_by_field_name(n) for n in ("consequence", "alternative")]
            return self._widest([part for part in parts if part])
        operands = [c for c in node.named_children if c.type != "comment"]
        if kind in ("binary_expression", "parenthesized_expression", "unary_expression"):
            return self._widest(operands)
        return None

    def _type_by_value(self, declared: Declared) -> str | None:
        """Return what `auto` stands for, found once: a value may occur in the next one more than
        once."""
        if declared not in self._types:
            self._types[declared] = None if declared.value is None else self.type_of(declared.value)
        return self._types[declared]

    def _widest(self, nodes: list[Node]) -> str | None:
        types = [self.type_of(node) for node in nodes]
        if None in types:
            return None
        for name in ("double", "float"):
            if name in types:
                return name
        return types[0] if types else None

    def _type_of_call(self, node: Node) -> str | None:
        function, arguments = (node.child_by_field_name(n) for n in ("function", "arguments"))
        if function is None or arguments is None:
            return None
        name = self.text.of(function)
        if cast := _CAST.fullmatch(name):
            return cast["type"]
        if name in _NUMBERS:
            return name
        if name.rpartition("::")[2] in _GENERIC:
            return self._widest(arguments.named_children)
        returned = {
            self.text.of(kind)
            for other in self.text.functions()
            if (kind := other.child_by_field_name("type")) is not None
            and f" {name}(" in self.text.of(other).partition("{")[0]
        }
        return returned.pop() if len(returned) == 1 else None


@lru_cache(maxsize=256)
def names_of(text: CppText, function: Node) -> Names:
    return Names(text, function)


def targets(node: Node) -> Iterator[Node]:
    """Yield what is assigned to, incremented or decremented anywhere in a node."""
    for part in walk(node):
        if part.type == "assignment_expression" and (left := part.child_by_field_name("left")):
            yield left
        elif part.type == "update_expression" and (one := part.child_by_field_name("argument")):
            yield one


def addressed(node: Node) -> Iterator[Node]:
    """Yield what `&` takes the address of."""
    for part in walk(node):
        if part.type == "pointer_expression" and part.children[0].type == "&":
            argument = part.child_by_field_name("argument")
            if argument is not None:
                yield argument


def is_real(type_name: str | None) -> bool:
    return type_name in _NUMBERS


def _declarations(text: CppText, function: Node) -> Iterator[Declared]:
    for node in walk(function):
        if node.type not in ("declaration", "parameter_declaration", "for_range_loop"):
            continue
        scope = _scope(node)
        kind = node.child_by_field_name("type")
        words = [text.of(c) for c in node.named_children if c.type == "type_qualifier"]
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            form = "plain"
            inner: Node | None = declarator
            while inner is not None and inner.type not in ("identifier", "field_identifier"):
                form = {"pointer_declarator": "pointer", "array_declarator": "array"}.get(
                    inner.type, form
                )
                below = inner.child_by_field_name("declarator")
                inner = below or next((c for c in inner.named_children if _names(c)), None)
            if inner is not None and kind is not None:
                constant = "const" in words or "constexpr" in words
                yield Declared(text.of(inner), text.of(kind), form, constant, value, node, scope)


def _names(node: Node) -> bool:
    return node.type in ("identifier", "pointer_declarator", "array_declarator")


def _scope(node: Node) -> Node:
    above = node if node.type == "for_range_loop" else node.parent
    while above is not None and above.type not in _SCOPES and above.parent is not None:
        above = above.parent
    assert above is not None
    return above
