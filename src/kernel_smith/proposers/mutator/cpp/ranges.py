"""Edits of loop ranges: no division by a block size, no iteration that a test drops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.addresses import terms
from kernel_smith.proposers.mutator.cpp.loops import (
    Loop,
    enclosing,
    identifiers,
    innermost,
    places,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import names_of, targets
from kernel_smith.proposers.mutator.cpp.text import CppText, cpp_edit, replaced, rewritten, walk
from kernel_smith.proposers.mutator.edit import Site, Splice


@cpp_edit(
    "split-by-quotient",
    "Turn a loop that divides its variable into two loops: one over the quotient, one within it.",
)
def split_by_quotient(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        pragma = pragma_before(loop)
        simple = loop.start == "0" and loop.step == "1" and innermost(loop)
        if not simple or (pragma is not None and "parallel for" not in text.of(pragma)):
            continue
        if any(node.type == "break_statement" for node in walk(loop.body)):
            continue
        for divisor in sorted({d for _, _, d in _divisions(text, loop)}):
            yield Site(place, _by_quotient(text, loop, divisor), f"by {divisor}")


def _divisions(text: CppText, loop: Loop) -> Iterator[tuple[Node, str, str]]:
    """Quotients and remainders of the loop's variable by something that stays the same."""
    fixed = {text.of(target) for target in targets(loop.body)}
    fixed |= {d.name for d in names_of(text, loop.function).declared_in(loop.body)}
    for node in walk(loop.body):
        parts = [node.child_by_field_name(n) for n in ("left", "operator", "right")]
        if node.type != "binary_expression" or not (parts[0] and parts[1] and parts[2]):
            continue
        left, operator, right = (text.of(part) for part in parts if part)
        divides = left == loop.variable and operator in "/%" and right != loop.variable
        if divides and parts[2].type == "identifier" and right not in fixed:
            yield node, operator, right


def _by_quotient(text: CppText, loop: Loop, divisor: str) -> tuple[Splice, ...]:
    v, q = loop.variable, f"{loop.variable}_quotient"
    changes = [
        replaced(node, q if operator == "/" else f"({v} - {q} * {divisor})")
        for node, operator, by in _divisions(text, loop)
        if by == divisor
    ]
    whole = loop.header(variable=q, end=f"({loop.end} + {divisor} - 1) / {divisor}")
    end = f"std::min<{loop.type}>(({q} + 1) * {divisor}, {loop.end})"
    within = loop.header(start=f"{q} * {divisor}", end=end)
    body = rewritten(text, loop.body, changes)
    new = f"{whole} {{\n{text.indent(loop.node)}{within} {body}\n{text.indent(loop.node)}}}"
    return (*text.include("algorithm"), replaced(loop.node, new))


@dataclass(frozen=True)
class _Bound:
    """A test that the loop's range can take over."""

    node: Node
    loop: Loop
    lower: str = ""
    upper: str = ""


@cpp_edit(
    "narrow-range",
    "Start and end a loop where its test first and last holds, and drop the test.",
)
def narrow_range(text: CppText) -> Iterator[Site]:
    for place, loop in places(text):
        guard = _guard(text, loop)
        if guard is None or pragma_before(loop) is not None or loop.step != "1":
            continue
        statement, tests, skips = guard
        around = _whole_body_of(text, loop)
        bounds = [_bound(text, test, [loop, *around], skips) for test in tests]
        taken = [bound for bound in bounds if bound is not None]
        if not taken:
            continue
        left = [text.of(t) for t, bound in zip(tests, bounds, strict=True) if bound is None]
        changes = [_new_header(text, one, taken) for one in (loop, *around)]
        changes.append(_without(text, statement, left, skips))
        splices = [change for change in changes if change is not None]
        yield Site(place, (*text.include("algorithm"), *splices))


def _guard(text: CppText, loop: Loop) -> tuple[Node, list[Node], bool] | None:
    """`if (a || b) continue;` after declarations, or `if (a && b) ...;` as the end of the body."""
    statements = loop.statements
    for statement in statements:
        if statement.type == "declaration":
            continue
        if statement.type != "if_statement" or statement.child_by_field_name("alternative"):
            return None
        clause = statement.child_by_field_name("condition")
        value = clause.child_by_field_name("value") if clause else None
        then = statement.child_by_field_name("consequence")
        if value is None or then is None:
            return None
        skips = text.of(then).strip(" {};\n") == "continue"
        if not skips and statement.id != statements[-1].id:
            return None
        return statement, _joined(value, "||" if skips else "&&"), skips
    return None


def _joined(node: Node, operator: str) -> list[Node]:
    found = node.child_by_field_name("operator")
    if node.type == "binary_expression" and found is not None and found.type == operator:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        assert left is not None and right is not None
        return _joined(left, operator) + _joined(right, operator)
    return [node]


def _whole_body_of(text: CppText, loop: Loop) -> list[Loop]:
    """Return the loop around, if it does nothing but this loop."""
    around = enclosing(loop)[-1:]
    whole = around and [s.id for s in around[0].statements] == [loop.node.id]
    fits = whole and around[0].step == "1" and pragma_before(around[0]) is None
    return around if fits else []


def _bound(text: CppText, test: Node, around: list[Loop], skips: bool) -> _Bound | None:
    parts = [test.child_by_field_name(n) for n in ("left", "operator", "right")]
    if test.type != "binary_expression" or not (parts[0] and parts[1] and parts[2]):
        return None
    operator, right = text.of(parts[1]), text.of(parts[2])
    if skips:
        operator = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}.get(operator, "")
    loop, offset = _position(text, parts[0], around)
    if loop is None or operator not in ("<", "<=", ">=", ">"):
        return None
    changing = {d.name for d in names_of(text, loop.function).declared_in(loop.node)}
    changing |= {text.of(target) for target in targets(loop.body)}
    if identifiers(right) & changing:
        return None
    edge = f"{right} - ({offset})" if offset else right
    edge += " + 1" if operator in ("<=", ">") else ""
    if operator in ("<", "<="):
        return _Bound(test, loop, upper=edge)
    return _Bound(test, loop, lower=edge)


def _position(text: CppText, node: Node, around: list[Loop]) -> tuple[Loop | None, str]:
    """Return the loop whose variable a tested value is, and what is added to it."""
    for loop in around:
        if text.of(node) == loop.variable:
            return loop, ""
    loop = around[0]
    declared = names_of(text, loop.function).lookup(text.of(node), node)
    value = declared.value if declared else None
    if declared is None or value is None or not declared.constant:
        return None, ""
    if declared.node.parent is None or declared.node.parent.id != loop.body.id:
        return None, ""
    added = [t for t in terms(value) if loop.variable in identifiers(text.of(t))]
    own = {d.name for d in names_of(text, loop.function).declared_in(loop.body)}
    if len(added) != 1 or added[0].type != "identifier" or identifiers(text.of(value)) & own:
        return None, ""
    if _is_subtracted(added[0], value):
        return None, ""
    return loop, rewritten(text, value, [replaced(added[0], "0")])


def _is_subtracted(term: Node, whole: Node) -> bool:
    """Is a term subtracted, or in parentheses that may be?"""
    while term.id != whole.id and term.parent is not None:
        before = term.prev_sibling
        if term.type == "parenthesized_expression" or (before and before.type == "-"):
            return True
        term = term.parent
    return False


def _new_header(text: CppText, loop: Loop, bounds: list[_Bound]) -> Splice | None:
    own = [bound for bound in bounds if bound.loop is loop]
    if not own:
        return None
    start, end = loop.start, loop.end
    for bound in own:
        start = f"std::max<{loop.type}>({start}, {bound.lower})" if bound.lower else start
        end = f"std::min<{loop.type}>({end}, {bound.upper})" if bound.upper else end
    header = loop.header(start=start, end=end)
    return Splice(loop.node.start_byte, loop.body.start_byte, f"{header} ")


def _without(text: CppText, statement: Node, left: list[str], skips: bool) -> Splice:
    then = statement.child_by_field_name("consequence")
    assert then is not None
    if left:
        condition = (" || " if skips else " && ").join(left)
        return replaced(statement, f"if ({condition}) {text.of(then)}")
    return replaced(statement, "" if skips else text.of(then))
