"""`--fail-if EXPR`: a condition on a comparison, such as `amsr.high < 0 or lost > 0`.

Numbers, names, `+ - * /`, comparisons, `and`, `or`, `not` and parentheses; nothing else is read.
"""

from __future__ import annotations

import ast
import operator
from typing import Any

from kernel_smith.bench.compare import Change, Comparison
from kernel_smith.errors import BadInput

_OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_SCORES = ("correct", "fast_1", "amsr")
_PARTS = ("a", "b", "change", "low", "high")
_COUNTS = ("gained", "lost", "faster", "slower", "left_out")
NAMES = (
    *(f"{score}.{part}" for score in _SCORES for part in _PARTS),
    *("ratio.value", "ratio.low", "ratio.high"),
    *(*_COUNTS, "paired"),
)


class Condition:
    """Raises `BadInput` for what cannot be read, before anything is compared."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise self._unreadable("it is no expression") from None
        self._value(self._tree, dict.fromkeys(NAMES, 1.0))
        if not isinstance(self._tree, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            raise self._unreadable("it says neither yes nor no")

    def holds(self, comparison: Comparison) -> bool:
        """Raises `BadInput` where the comparison has no such figure: that is no pass."""
        return bool(self._value(self._tree, figures(comparison)))

    def _value(self, node: ast.expr, names: dict[str, float | None]) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name() | ast.Attribute():
                return self._named(ast.unparse(node), names)
            case ast.BoolOp():
                values = [self._value(each, names) for each in node.values]
                return all(values) if isinstance(node.op, ast.And) else any(values)
            case ast.UnaryOp() if type(node.op) in _OPERATORS:
                return _OPERATORS[type(node.op)](self._value(node.operand, names))
            case ast.BinOp() if type(node.op) in _OPERATORS:
                left, right = self._value(node.left, names), self._value(node.right, names)
                return self._computed(node.op, left, right)
            case ast.Compare():
                return self._compared(node, names)
        raise self._unreadable(f"`{ast.unparse(node)}` has no place in it")

    def _computed(self, operation: ast.operator, left: Any, right: Any) -> Any:
        try:
            return _OPERATORS[type(operation)](left, right)
        except ZeroDivisionError:
            raise self._unreadable("it divides by zero") from None

    def _compared(self, node: ast.Compare, names: dict[str, float | None]) -> bool:
        values = [self._value(each, names) for each in (node.left, *node.comparators)]
        outcomes = []
        for operation, left, right in zip(node.ops, values, values[1:], strict=False):
            if type(operation) not in _OPERATORS:
                raise self._unreadable("it compares by words")
            outcomes.append(_OPERATORS[type(operation)](left, right))
        return all(outcomes)

    def _named(self, name: str, names: dict[str, float | None]) -> float:
        if name not in names:
            raise self._unreadable(f"nothing is called `{name}`")
        value = names[name]
        if value is None:
            raise BadInput(
                f"--fail-if {self.text!r}: there is no {name}, since no problem was solved by both",
                hint="leave it out of the condition",
            )
        return value

    def _unreadable(self, why: str) -> BadInput:
        return BadInput(
            f"--fail-if {self.text!r}: {why}", hint=f"compare numbers and these: {', '.join(NAMES)}"
        )


def figures(comparison: Comparison) -> dict[str, float | None]:
    """Return all that a condition may name."""
    found: dict[str, float | None] = {"paired": comparison.paired}
    for score in _SCORES:
        found |= _parts(score, getattr(comparison, score))
    ratio = comparison.ratio
    for part in ("value", "low", "high"):
        found[f"ratio.{part}"] = None if ratio is None else getattr(ratio, part)
    return found | {name: len(getattr(comparison, name)) for name in _COUNTS}


def _parts(score: str, change: Change | None) -> dict[str, float | None]:
    if change is None:
        return dict.fromkeys(f"{score}.{part}" for part in _PARTS)
    difference = change.difference
    return {
        f"{score}.a": change.a,
        f"{score}.b": change.b,
        f"{score}.change": difference.value,
        f"{score}.low": difference.low,
        f"{score}.high": difference.high,
    }
