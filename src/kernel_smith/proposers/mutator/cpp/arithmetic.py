"""Edits of arithmetic inside loops: fewer divisions, fewer loads, single precision."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.dependence import dependences
from kernel_smith.proposers.mutator.cpp.loops import (
    Loop,
    identifiers,
    innermost,
    named_functions,
    places,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import Names, addressed, is_real, names_of, targets
from kernel_smith.proposers.mutator.cpp.text import CppText, cpp_edit, inside, replaced, walk
from kernel_smith.proposers.mutator.edit import Site, Splice

_CONDITIONAL = {"if_statement", "conditional_expression", "switch_statement", "while_statement"}


def ahead_of(text: CppText, loop: Loop, line: str) -> tuple[Splice, ...]:
    """Return a statement before a loop, if there is room for one."""
    if loop.node.parent is None or loop.node.parent.type != "compound_statement":
        return ()
    return text.before(pragma_before(loop) or loop.node, line)


def changing(text: CppText, loop: Loop) -> set[str]:
    """Return the names that a loop declares or assigns."""
    names = names_of(text, loop.function)
    own = {d.name for d in names.declared_in(loop.node)}
    bases = [t.child_by_field_name("argument") or t for t in targets(loop.body)]
    return own.union(*(identifiers(text.of(base)) for base in bases))


@cpp_edit(
    "multiply-by-reciprocal",
    "Divide once before a loop and multiply inside it. Results may differ in the last digit.",
)
def reciprocal(text: CppText) -> Iterator[Site]:
    """A seed has a function for each workload, so there is also a site in each of them at once."""
    first_of: dict[int, tuple[Splice, ...]] = {}
    for place, loop in places(text):
        if not innermost(loop):
            continue
        names, fixed = names_of(text, loop.function), changing(text, loop)
        divisions: dict[str, list[Node]] = {}
        for node in walk(loop.body):
            right = node.child_by_field_name("right")
            operator = node.child_by_field_name("operator")
            if right is None or operator is None or text.of(operator) not in ("/", "/="):
                continue
            if _can_invert(names, right) and not identifiers(text.of(right)) & fixed:
                divisions.setdefault(text.of(right), []).append(node)
        for divisor, nodes in divisions.items():
            splices = _inverted(text, names, loop, divisor, nodes)
            if splices:
                first_of.setdefault(loop.function.start_byte, splices)
                yield Site(place, splices, f"by {divisor}")
    if len(first_of) > 1:
        yield Site("the first place of each function", tuple(itertools.chain(*first_of.values())))


def _can_invert(names: Names, node: Node) -> bool:
    return node.type in ("identifier", "number_literal") and is_real(names.type_of(node))


def _inverted(
    text: CppText, names: Names, loop: Loop, divisor: str, nodes: list[Node]
) -> tuple[Splice, ...] | None:
    right = nodes[0].child_by_field_name("right")
    assert right is not None
    type_name = names.type_of(right)
    one = "1.0f" if type_name == "float" else "1.0"
    if right.type == "identifier":
        name = f"{divisor}_inverse"
        line = ahead_of(text, loop, f"const {type_name} {name} = {one} / {divisor};")
    else:
        name, line = f"({one} / {divisor})", ()
    if name in text.of(loop.function) or (right.type == "identifier" and not line):
        return None
    changes = []
    for node in nodes:
        operator, by = node.child_by_field_name("operator"), node.child_by_field_name("right")
        assert operator is not None and by is not None
        changes += [replaced(operator, text.of(operator).replace("/", "*")), replaced(by, name)]
    return (*line, *changes)


@cpp_edit("hoist-loads", "Load what stays the same once before an innermost loop.")
def hoist_loads(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        if not innermost(loop):
            continue
        found: dict[str, list[Node]] = {}
        for node in _invariant_loads(text, loop):
            found.setdefault(text.of(node), []).append(node)
        lines, changes = [], []
        for number, (expression, nodes) in enumerate(sorted(found.items())):
            name = f"{identifiers(expression.partition('[')[0]).pop()}_kept_{number}"
            lines.append(f"const auto {name} = {expression};")
            changes += [replaced(node, name) for node in nodes]
        ahead = ahead_of(text, loop, f"\n{text.indent(loop.node)}".join(lines)) if lines else ()
        if ahead and "_kept_" not in text.of(loop.function):
            yield Site(place, (*ahead, *changes))


def _invariant_loads(text: CppText, loop: Loop) -> Iterator[Node]:
    """Elements that are read in every iteration, and always the same ones."""
    if dependences(loop) is None:
        return
    fixed = changing(text, loop)
    written = [*targets(loop.body), *addressed(loop.body)]
    roots = set().union(*(identifiers(text.of(n)) for n in written)) if written else set()
    for node in walk(loop.body):
        base = node.child_by_field_name("argument")
        if node.type != "subscript_expression" or base is None or base.type != "identifier":
            continue
        nested = node.parent is not None and node.parent.type in (
            "subscript_expression",
            "pointer_expression",
            "subscript_argument_list",
        )
        if nested or text.of(base) in roots or identifiers(text.of(node)) & fixed:
            continue
        if not is_conditional(node, loop):
            yield node


def is_conditional(node: Node, loop: Loop) -> bool:
    """May an iteration leave this node out?"""
    above = node.parent
    while above is not None and above.id != loop.node.id:
        operator = above.child_by_field_name("operator")
        if above.type in _CONDITIONAL or (operator and operator.type in ("&&", "||")):
            return True
        above = above.parent
    return any(n.type in ("continue_statement", "break_statement") for n in walk(loop.body))


@cpp_edit(
    "single-precision",
    "Compute in single precision what a function computes in double. Costs accuracy; the judge "
    "tells whether too much.",
)
def single_precision(text: CppText) -> Iterator[Site]:
    for place, function in named_functions(text):
        body = function.child_by_field_name("body")
        if body is None:
            continue
        places_of_type = [
            node
            for node in walk(body)
            if node.type == "primitive_type" and text.of(node) == "double"
        ]
        if not places_of_type:
            continue
        literals = [n for n in walk(body) if n.type == "number_literal" and _is_double(text.of(n))]
        splices = [replaced(node, "float") for node in places_of_type]
        splices += [replaced(node, f"{text.of(node)}f") for node in literals]
        yield Site(place, tuple(splices), "everything")
        accumulators = [n for n in places_of_type if _is_accumulator(text, n)]
        # Library functions such as std::max want two arguments of one type.
        strict = "std::max(" in text.of(body) or "std::min(" in text.of(body)
        if accumulators and len(accumulators) < len(places_of_type) and not strict:
            only = tuple(replaced(node, "float") for node in accumulators)
            yield Site(place, only, "accumulators")


def _is_double(literal: str) -> bool:
    real = "." in literal or "e" in literal.lower()
    return real and not literal.lower().startswith("0x") and literal[-1] not in "fFlL"


def _is_accumulator(text: CppText, node: Node) -> bool:
    """Is this the type of a variable that the function changes later on?"""
    declaration = node.parent
    if declaration is None or declaration.type != "declaration":
        return False
    return not any(
        c.type == "type_qualifier" and inside(c, declaration) for c in declaration.named_children
    )
