"""May the iterations of a loop run in any order? And which variables do they only add to?

`dependences(loop)` answers None for no, or if it cannot tell; else the reductions, which may be
none. It assumes that pointer parameters do not overlap, as tensors of a candidate do not.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.addresses import key_of, parse_expression, resolve, words
from kernel_smith.proposers.mutator.cpp.loops import Loop
from kernel_smith.proposers.mutator.cpp.names import Names, addressed, names_of, targets
from kernel_smith.proposers.mutator.cpp.text import CppText, inside, walk

_FORBIDDEN = {
    "return_statement",
    "goto_statement",
    "lambda_expression",
    "throw_statement",
    "co_yield_statement",
    "try_statement",
    "new_expression",
    "delete_expression",
}
_LOOPS = {"for_statement", "while_statement", "do_statement", "for_range_loop", "switch_statement"}
_HARMLESS_METHODS = {"data", "size", "begin", "end"}


@lru_cache(maxsize=1024)
def dependences(loop: Loop) -> dict[str, str] | None:
    """Reduced variables with their operator (`+`, `max`, `min`), or None if the order matters."""
    names = names_of(loop.text, loop.function)
    if any(node.type in _FORBIDDEN for node in walk(loop.body)) or _breaks(loop):
        return None
    if loop.variable in {loop.text.of(target) for target in targets(loop.body)}:
        return None
    if not _calls_are_harmless(loop, names):
        return None
    reductions: dict[str, str] = {}
    for target in targets(loop.body):
        if target.type == "identifier" and not _is_private(loop, names, target):
            name = loop.text.of(target)
            operator = reduction_operator(loop, name)
            if operator is None:
                return None
            reductions[name] = operator
    return reductions if _elements_differ(loop, names) else None


def independent(loop: Loop) -> bool:
    return dependences(loop) == {}


def reduction_operator(loop: Loop, name: str) -> str | None:
    """Return the operator by which alone a loop changes a variable that it does not use
    otherwise."""
    text = loop.text
    found: set[str] = set()
    seen = 0
    for target in targets(loop.body):
        if text.of(target) != name or target.parent is None:
            continue
        operator, uses = _update(loop, target.parent, name)
        found.add(operator)
        seen += uses
    uses = sum(n.type == "identifier" and text.of(n) == name for n in walk(loop.body))
    return found.pop() if len(found) == 1 and "" not in found and seen == uses else None


def _update(loop: Loop, node: Node, name: str) -> tuple[str, int]:
    """Return the operator of one update, and how often it mentions the variable."""
    text = loop.text
    right = node.child_by_field_name("right")
    uses = sum(n.type == "identifier" and text.of(n) == name for n in walk(node))
    if node.type == "update_expression":
        return ("+", 1) if node.parent and node.parent.type == "expression_statement" else ("", 0)
    operator = node.child_by_field_name("operator")
    if right is None or operator is None or not _is_statement(node):
        return "", 0
    if text.of(operator) in ("+=", "-="):
        return ("+", 1) if uses == 1 else ("", 0)
    if text.of(operator) != "=":
        return "", 0
    guard = _guard(node)
    if guard is not None:
        return _compared(loop, guard, text.of(right), name), 2
    if right.type == "call_expression" and uses == 2:
        called = text.of(right).partition("(")[0]
        return {"std::max": "max", "std::min": "min", "std::fmax": "max"}.get(called, ""), 2
    if right.type == "conditional_expression" and uses == 3:
        parts = [right.child_by_field_name(n) for n in ("condition", "consequence", "alternative")]
        if parts[0] and parts[1] and parts[2] and text.of(parts[2]) == name:
            return _compared(loop, parts[0], text.of(parts[1]), name), 3
    return "", 0


def _is_statement(node: Node) -> bool:
    return node.parent is not None and node.parent.type == "expression_statement"


def _guard(node: Node) -> Node | None:
    """Return the condition of `if (condition) variable = value;`."""
    statement = node.parent
    above = statement.parent if statement else None
    if above is None or above.type != "if_statement" or above.child_by_field_name("alternative"):
        return None
    clause = above.child_by_field_name("condition")
    return clause.child_by_field_name("value") if clause else None


def _compared(loop: Loop, condition: Node, value: str, name: str) -> str:
    """Return the operator of "if `condition`, the variable becomes `value`"."""
    text = loop.text
    sides = [condition.child_by_field_name(n) for n in ("left", "operator", "right")]
    if condition.type != "binary_expression" or not (sides[0] and sides[1] and sides[2]):
        return ""
    left, operator, right = (text.of(side) for side in sides if side)
    if (left, right) == (value, name):
        return {">": "max", "<": "min"}.get(operator, "")
    if (left, right) == (name, value):
        return {"<": "max", ">": "min"}.get(operator, "")
    return ""


def _breaks(loop: Loop) -> bool:
    """Is the loop left before its end?"""
    for node in walk(loop.body):
        if node.type == "break_statement":
            above = node.parent
            while above is not None and above.type not in _LOOPS:
                above = above.parent
            if above is None or above.id == loop.node.id:
                return True
    return False


def _is_private(loop: Loop, names: Names, node: Node) -> bool:
    declared = names.lookup(loop.text.of(node), node)
    if declared is None or declared.type.endswith("&"):
        return False
    is_reference = f"& {declared.name}" in loop.text.of(declared.node)
    return inside(declared.node, loop.body) and not is_reference


def _calls_are_harmless(loop: Loop, names: Names) -> bool:
    """No call changes an object that outlives the iteration, as far as can be seen."""
    for node in walk(loop.body):
        if node.type == "preproc_call" and "simd" not in loop.text.of(node):
            return False
        if node.type in ("asm_statement", "gnu_asm_expression"):
            return False
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        if function is None:
            continue
        if function.type == "field_expression":
            argument, field = (function.child_by_field_name(n) for n in ("argument", "field"))
            known = argument is not None and _is_private(loop, names, argument)
            if not known and (field is None or loop.text.of(field) not in _HARMLESS_METHODS):
                return False
    return True


def _elements_differ(loop: Loop, names: Names) -> bool:
    """Does every iteration have its own elements of each array that is written to?"""
    moving = {d.name for d in names.declared_in(loop.body)}
    written: set[str] = set()
    keys: dict[str, set[str | None]] = defaultdict(set)
    for node, writes in _accesses(loop, names):
        root, expression = _address(loop, names, node)
        if root is None:
            if writes:
                return False
            continue
        declared = names.lookup(root, node)
        if declared is not None and inside(declared.node, loop.body):
            if declared.kind == "pointer" or declared.type == "auto":
                return False
            continue
        key = key_of(expression, loop, moving)
        keys[root].add(key or key_of(_address(loop, names, node, starts=True)[1], loop, moving))
        if writes:
            written.add(root)
    return all(len(keys[root]) == 1 and None not in keys[root] for root in written)


def _accesses(loop: Loop, names: Names) -> list[tuple[Node, bool]]:
    """Expressions that name memory, and whether it may be written."""
    changed = {target.id for target in targets(loop.body) if target.type != "identifier"}
    shown = {node.id for node in addressed(loop.body)}
    found: list[tuple[Node, bool]] = []
    for node in walk(loop.body):
        is_place = node.type in ("subscript_expression", "field_expression") or (
            node.type == "pointer_expression" and node.children[0].type == "*"
        )
        if is_place or node.id in changed:
            found.append((node, node.id in changed or node.id in shown))
        elif node.type == "argument_list" and node.parent and node.parent.type == "call_expression":
            found += [(n, True) for n in node.named_children if _hands_over(names, n)]
        elif node.id in shown and not _is_private(loop, names, node):
            found.append((node, True))
    return found


def _hands_over(names: Names, argument: Node) -> bool:
    """Is an argument a pointer through which the called function may write?"""
    pending = [argument]
    while pending:
        node = pending.pop()
        if node.type == "identifier":
            declared = names.lookup(names.text.of(node), node)
            if declared and declared.kind in ("pointer", "array") and not declared.constant:
                return True
        elif node.type in ("binary_expression", "parenthesized_expression", "cast_expression"):
            pending += node.named_children
    return False


def _address(loop: Loop, names: Names, node: Node, starts: bool = False) -> tuple[str | None, str]:
    """Return the array that an expression is in, if that is known, and where in it."""
    at = node
    if node.type == "subscript_expression":
        base, index = (node.child_by_field_name(n) for n in ("argument", "indices"))
        assert base is not None and index is not None
        at = base
        position = resolve(names, index, loop, starts)[1:-1]
        expression = f"{resolve(names, base, loop, starts)} + ({position})"
    elif node.type in ("field_expression", "pointer_expression"):
        at = node.child_by_field_name("argument") or node
        expression = resolve(names, at, loop, starts)
    else:
        expression = resolve(names, node, loop, starts)
    return _root(names, expression, at), expression


def _root(names: Names, expression: str, at: Node) -> str | None:
    parsed, value = parse_expression(expression)
    for name in sorted(words(parsed, value)):
        declared = names.lookup(name, at)
        if declared is None:
            continue
        holds = declared.kind in ("pointer", "array") or declared.type.endswith(">")
        if (holds or declared.type == "auto") and not _is_index(parsed, value, name):
            return name
    plain = names.lookup(expression, at)
    return plain.name if plain else None


def _is_index(parsed: CppText, value: Node, name: str) -> bool:
    """Does an array occur only as the base of another element's index, as in `y[ids[i]]`?"""
    uses = [n for n in walk(value) if n.type == "identifier" and parsed.of(n) == name]
    return all(n.parent is not None and n.parent.type == "subscript_expression" for n in uses)
