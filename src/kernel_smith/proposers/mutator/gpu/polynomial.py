"""Sums of products of names, in one form however they are written.

`blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x` and `threadIdx.x + kThreads*blockIdx.x`
are the same polynomial. Conversions between integers are left out of account.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable

Polynomial = dict[tuple[str, ...], int]
"""Coefficients by the sorted names of a product; the empty product is the constant term."""

_INTEGERS = r"(?:u?int(?:32_t|64_t)?|long|long long|unsigned|unsigned int|std::u?int64_t|size_t)"
_CAST = re.compile(rf"static_cast\s*<\s*{_INTEGERS}\s*>|\(\s*{_INTEGERS}\s*\)")
_SUFFIX = re.compile(r"\b(\d+)[uUlL]+\b")
_LONGEST = 200  # characters; what is longer is no index that anybody wrote


def polynomial(expression: str, value_of: Callable[[str], Polynomial | None]) -> Polynomial | None:
    """Return the polynomial that an expression is, or None. `value_of` may know what a name
    stands for."""
    plain = _SUFFIX.sub(r"\1", _CAST.sub("", expression)).replace("\n", " ").strip()
    plain = re.sub(r"\b(\w+)\.([xyz])\b", r"\1_\2", plain)
    if len(plain) > _LONGEST:
        return None
    try:
        tree = ast.parse(plain, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return _read(tree, value_of)


def name(word: str) -> Polynomial:
    return {(word,): 1}


def number(value: int) -> Polynomial:
    return {(): value} if value else {}


def added(a: Polynomial, b: Polynomial, sign: int = 1) -> Polynomial:
    total = defaultdict(int, a)
    for product, factor in b.items():
        total[product] += sign * factor
    return {product: factor for product, factor in total.items() if factor}


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    total: dict[tuple[str, ...], int] = defaultdict(int)
    for one, factor in a.items():
        for other, other_factor in b.items():
            total[tuple(sorted(one + other))] += factor * other_factor
    return {product: factor for product, factor in total.items() if factor}


def _read(node: ast.expr, value_of: Callable[[str], Polynomial | None]) -> Polynomial | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return number(node.value)
    if isinstance(node, ast.Name):
        known = value_of(node.id)
        return name(node.id) if known is None else known
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _read(node.left, value_of), _read(node.right, value_of)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        return multiplied(left, right)
    if isinstance(node.op, ast.Add | ast.Sub):
        return added(left, right, 1 if isinstance(node.op, ast.Add) else -1)
    return None
