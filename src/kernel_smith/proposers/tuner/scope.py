"""What a name stands for in a Python file, where it is bound once; and who uses a node."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Scopes:
    """Looks names up in the enclosing functions and then in the module."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }
        self._bindings: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}

    def enclosing(self, node: ast.AST) -> list[ast.AST]:
        """Return the functions around a node from the inside out, and the module."""
        found: list[ast.AST] = []
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, Function | ast.Module):
                found.append(node)
        return found

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def value(self, node: ast.expr) -> ast.expr:
        """Return the expression behind a name that is bound once, to one; any other node itself."""
        if not isinstance(node, ast.Name):
            return node
        for scope in self.enclosing(node):
            if scope not in self._bindings:
                self._bindings[scope] = _bindings(scope)
            bound = self._bindings[scope].get(node.id)
            if bound:
                return bound[0] if len(bound) == 1 and bound[0] is not None else node
        return node


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    """`a, b = 1, 2` as two bindings."""
    if isinstance(target, ast.Name):
        yield target, value
    elif (
        isinstance(target, ast.Tuple)
        and isinstance(value, ast.Tuple)
        and len(target.elts) == len(value.elts)
    ):
        for one, other in zip(target.elts, value.elts, strict=True):
            if isinstance(one, ast.Name):
                yield one, other


def integer(node: ast.expr | None) -> int | None:
    """Return the value of a plain integer literal."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def last_name(node: ast.expr) -> str:
    """`triton.autotune` and `autotune(...)` as "autotune"."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _bindings(scope: ast.AST) -> dict[str, list[ast.expr | None]]:
    """Return what a scope binds: the expressions, None for what is bound in another way."""
    found: dict[str, list[ast.expr | None]] = {}
    for name, value in _all_bindings(scope):
        found.setdefault(name, []).append(value)
    return found


def _all_bindings(scope: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(scope, Function):
        arguments = scope.args
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg):
                yield argument.arg, None
    plain: set[ast.AST] = set()
    for node in _own_nodes(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name, value in pairs(target, node.value):
                    plain.add(name)
                    yield name.id, value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            plain.add(node.target)
            yield node.target.id, node.value
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in plain:
            yield node.id, None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, None


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope without those of functions inside, parents before children."""
    pending = list(ast.iter_child_nodes(scope))[::-1]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            pending += list(ast.iter_child_nodes(node))[::-1]
