"""Edits that trade the last digits for speed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import function_name, named_functions
from kernel_smith.proposers.mutator.cpp.names import names_of
from kernel_smith.proposers.mutator.cpp.text import replaced, walk
from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.gpu.kernels import runs_on_device
from kernel_smith.proposers.mutator.gpu.strided import INTEGERS
from kernel_smith.proposers.mutator.gpu.text import GpuText, gpu_edit

# `{x}` stands for the argument, which is evaluated once.
_FAST = {
    "expf": "__expf({x})",
    "logf": "__logf({x})",
    "sinf": "__sinf({x})",
    "cosf": "__cosf({x})",
    "powf": "__powf({x})",
    "tanhf": "(1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * ({x}))))",
}
_FLOAT_FUNCTIONS = re.compile(
    r"(?:__)?(?:exp|exp2|expm1|log|log1p|log2|sin|cos|tanh|erf|sqrt|rsqrt|fabs|fmax|fmin|fma|pow"
    r"|fdivide)f"
)
_INTEGER_LITERAL = re.compile(r"\d+[uUlL]*")
_FLOAT_LITERAL = re.compile(r"[\d.]+(?:e[+-]?\d+)?f", re.IGNORECASE)


@gpu_edit(
    "fast-intrinsics",
    "Use the hardware's approximations of exponentials, logarithms and the like. Costs accuracy; "
    "the judge tells whether too much.",
)
def fast_intrinsics(text: GpuText) -> Iterator[Site]:
    own = {function_name(text, function) for function in text.functions()}
    for place, function in named_functions(text):
        if not runs_on_device(text, function):
            continue
        for name in sorted(set(_FAST) - own):
            found = tuple(_calls(text, function, name))
            if found:
                yield Site(place, found, name)


@gpu_edit(
    "fast-division",
    "Divide by the hardware's approximate reciprocal. Costs the last digits.",
)
def fast_division(text: GpuText) -> Iterator[Site]:
    for place, function in named_functions(text):
        if runs_on_device(text, function):
            found = [n for n in walk(function) if _is_float_division(text, function, n)]
            inner = [n for n in found if not any(_above(other, n) for other in found)]
            if inner:
                yield Site(place, tuple(_fast_quotient(text, node) for node in inner))


@gpu_edit(
    "reciprocal-root",
    "Compute a reciprocal square root by one instruction. Results may differ in the last digit.",
)
def reciprocal_root(text: GpuText) -> Iterator[Site]:
    for place, function in named_functions(text):
        if not runs_on_device(text, function):
            continue
        found = []
        for node in walk(function):
            over, under = _quotient(text, node)
            if over is None or under is None or not re.fullmatch(r"1(\.0*)?f", text.of(over)):
                continue
            called = under.child_by_field_name("function")
            if called is not None and text.of(called) == "sqrtf":
                found.append(replaced(node, f"rsqrtf{text.of(under)[len('sqrtf') :]}"))
        if found:
            yield Site(place, tuple(found))


def _calls(text: GpuText, function: Node, name: str) -> Iterator[Splice]:
    for node in walk(function):
        called, arguments = (node.child_by_field_name(n) for n in ("function", "arguments"))
        if node.type != "call_expression" or called is None or arguments is None:
            continue
        inner = text.of(arguments)[1:-1]
        if text.of(called) == name and f"{name}(" not in inner:
            yield replaced(node, _FAST[name].format(x=inner))


def _quotient(text: GpuText, node: Node) -> tuple[Node | None, Node | None]:
    sign = node.child_by_field_name("operator")
    if node.type != "binary_expression" or sign is None or text.of(sign) != "/":
        return None, None
    return node.child_by_field_name("left"), node.child_by_field_name("right")


def _is_float_division(text: GpuText, function: Node, node: Node) -> bool:
    over, under = _quotient(text, node)
    if over is None or under is None or under.type == "number_literal":
        return False
    kinds = {_kind(text, function, over), _kind(text, function, under)}
    return "float" in kinds and kinds <= {"float", "int"}


def _above(other: Node, node: Node) -> bool:
    return other != node and other.start_byte >= node.start_byte and other.end_byte <= node.end_byte


def _fast_quotient(text: GpuText, node: Node) -> Splice:
    over, under = _quotient(text, node)
    assert over is not None and under is not None
    return replaced(node, f"__fdividef({_bare(text, over)}, {_bare(text, under)})")


def _bare(text: GpuText, node: Node) -> str:
    inner = node.named_children[0] if node.type == "parenthesized_expression" else node
    return text.of(inner)


def _kind(text: GpuText, function: Node, node: Node) -> str | None:
    """`float` or `int` where an expression certainly is one."""
    words = text.of(node)
    if node.type == "number_literal":
        whole = _INTEGER_LITERAL.fullmatch(words)
        return "int" if whole else "float" if _FLOAT_LITERAL.fullmatch(words) else None
    if node.type == "identifier":
        declared = names_of(text, function).lookup(words, node)
        declared = declared or names_of(text, text.root).lookup(words, node)
        plain = declared is not None and declared.kind == "plain"
        kind = declared.type if declared is not None and plain else None
        return "int" if kind in INTEGERS else kind if kind == "float" else None
    if node.type == "call_expression":
        return _kind_of_call(text, node)
    if node.type in ("binary_expression", "parenthesized_expression", "unary_expression"):
        sign = node.child_by_field_name("operator")
        if sign is not None and text.of(sign) not in ("+", "-", "*", "/"):
            return None
        parts = {_kind(text, function, c) for c in node.named_children if c.type != "comment"}
        if not parts or not parts <= {"float", "int"}:
            return None
        return "float" if "float" in parts else "int"
    return None


def _kind_of_call(text: GpuText, node: Node) -> str | None:
    called = node.child_by_field_name("function")
    name = text.of(called) if called is not None else ""
    if _FLOAT_FUNCTIONS.fullmatch(name) or name == "static_cast<float>":
        return "float"
    own = [f for f in text.functions() if function_name(text, f) == name]
    kinds = [f.child_by_field_name("type") for f in own]
    returned = {text.of(kind) for kind in kinds if kind is not None}
    return "float" if returned == {"float"} else None
