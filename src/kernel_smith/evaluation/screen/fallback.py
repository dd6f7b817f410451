"""Failures that are caught, so that something other than the kernel may answer.

Looking something up and handling its absence is fine, and so is raising a better error. What counts
is a `try` that computes, or whose handler computes, and that lets the call go on after a failure.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kernel_smith.evaluation.screen.code import Code
from kernel_smith.evaluation.screen.reach import functions_behind_forward
from kernel_smith.evaluation.screen.structure import makes_kernels
from kernel_smith.records import Finding, Reason

_Try: TypeAlias = ast.Try | ast.TryStar

_MISSING_MODULE = frozenset({"ImportError", "ModuleNotFoundError"})
_MISSING = _MISSING_MODULE | {"KeyError", "IndexError", "AttributeError", "StopIteration"}

# Methods of containers, strings and shapes: they look things up and compute nothing.
_LOOKUPS = {
    *("get", "pop", "setdefault", "items", "keys", "values", "append", "add", "update", "remove"),
    *("index", "count", "split", "strip", "lower", "upper", "format", "join", "startswith"),
    *("endswith", "size", "dim", "stride", "numel", "element_size", "data_ptr", "is_contiguous"),
}
_QUERIES = (
    "torch.get_num_threads",
    "torch.cuda.is_available",
    "torch.cuda.current_device",
    "torch.cuda.get_device_capability",
    "torch.cuda.get_device_properties",
)


def fallbacks(code: Code) -> Iterator[Finding]:
    reported: set[ast.AST] = set()
    for function in functions_behind_forward(code):
        for node in ast.walk(function):
            if node not in reported and _answers_otherwise(code, node):
                assert isinstance(node, ast.stmt)
                reported.add(node)
                yield code.finding(
                    Reason.FALLBACK,
                    node,
                    f"catches failures in `{function.name}`, so that something else may answer",
                )
    for node in code.nodes:
        if node not in reported and _hides_compiler_error(code, node):
            assert isinstance(node, ast.stmt)
            yield code.finding(
                Reason.FALLBACK, node, "catches the failure of a kernel to compile and goes on"
            )


def _answers_otherwise(code: Code, node: ast.AST) -> bool:
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _suppresses(code, node) and _computes(code, node.body)
    if not isinstance(node, (ast.Try, ast.TryStar)):
        return False
    going_on = [handler for handler in node.handlers if _goes_on(code, handler)]
    if not going_on:
        return False
    if _computes(code, [*node.body, *node.orelse]):
        return True
    return any(
        not _caught(handler) <= _MISSING and _computes(code, handler.body) for handler in going_on
    )


def _hides_compiler_error(code: Code, node: ast.AST) -> bool:
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _suppresses(code, node) and _compiles(code, node.body)
    return (
        isinstance(node, (ast.Try, ast.TryStar))
        and _compiles(code, node.body)
        and any(
            _goes_on(code, handler) and not _caught(handler) <= _MISSING_MODULE
            for handler in node.handlers
        )
    )


def _goes_on(code: Code, handler: ast.ExceptHandler) -> bool:
    """Whether the call survives the handler other than by compiling another kernel."""
    raises = isinstance(handler.body[-1], ast.Raise) and not any(
        isinstance(node, ast.Return) for node in _walk(handler.body)
    )
    return not raises and not _compiles(code, handler.body)


def _caught(handler: ast.ExceptHandler) -> frozenset[str]:
    """The names of the exceptions that a handler catches; a bare `except` catches all."""
    match handler.type:
        case None:
            return frozenset({"BaseException"})
        case ast.Tuple(elts=types):
            return frozenset(ast.unparse(kind) for kind in types)
        case kind:
            return frozenset({ast.unparse(kind)})


def _suppresses(code: Code, node: ast.With | ast.AsyncWith) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call)
        and code.names.origin(item.context_expr.func) == "contextlib.suppress"
        for item in node.items
    )


def _compiles(code: Code, body: Sequence[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Call) and makes_kernels(code.names.origin(node.func) or "")
        for node in _walk(body)
    )


def _computes(code: Code, body: Sequence[ast.stmt]) -> bool:
    """Whether some statements call a kernel, torch, or anything that may lead there."""
    return any(
        (isinstance(node, ast.Call) and not _is_harmless(code, node))
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        for node in _walk(body)
    )


def _is_harmless(code: Code, call: ast.Call) -> bool:
    origin = code.names.origin(call.func)
    if origin is not None:
        return origin in _QUERIES or origin.partition(".")[0] in sys.stdlib_module_names
    return isinstance(call.func, ast.Attribute) and call.func.attr in _LOOKUPS


def _walk(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)
