"""Which names of a Python function may be changed without changing what it does.

Only variables that the function binds by plain assignment. Parameters may be passed by name, and
whatever is bound by other means, declared global, or seen by a class body or `locals()` is left
alone: two programs must never look the same by mistake.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_LOOKING_AT_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "globals"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, *_COMPREHENSIONS})

# How names are bound, other than by assignment.
_BOUND_BY: dict[type[ast.AST], Callable[[Any], Iterable[str | None]]] = {
    ast.arg: lambda node: [node.arg],
    ast.FunctionDef: lambda node: [node.name],
    ast.AsyncFunctionDef: lambda node: [node.name],
    ast.Global: lambda node: node.names,
    ast.Nonlocal: lambda node: node.names,
    ast.alias: lambda node: [(node.asname or node.name).partition(".")[0]],
    ast.ExceptHandler: lambda node: [node.name],
    ast.MatchAs: lambda node: [node.name],
    ast.MatchStar: lambda node: [node.name],
    ast.MatchMapping: lambda node: [node.rest],
}


def local_names(function: Function) -> list[str]:
    """Return the names that may be changed, in the order of their first assignment."""
    search = _Search()
    search.visit(function.args, own=False)
    for statement in function.body:
        search.visit(statement, own=True)
    return [] if search.opaque else [name for name in search.assigned if name not in search.fixed]


class _Search:
    def __init__(self) -> None:
        self.assigned: dict[str, None] = {}
        self.fixed: set[str | None] = set()
        self.opaque = False

    def visit(self, node: ast.AST, own: bool) -> None:
        """`own`: the node is in the function's own scope, not in one inside it."""
        kind = type(node)
        if isinstance(node, ast.Name):
            self.opaque |= node.id in _LOOKING_AT_NAMES
            if own and type(node.ctx) is ast.Store:
                self.assigned[node.id] = None
            return
        if kind in _BOUND_BY:
            self.fixed.update(_BOUND_BY[kind](node))
        self.opaque |= kind is ast.ClassDef
        own = own and kind not in _SCOPES
        for field in node._fields:
            value = getattr(node, field)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item, own)
            elif isinstance(value, ast.AST) and field != "ctx":
                self.visit(value, own)
