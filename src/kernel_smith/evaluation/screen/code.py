"""A candidate's source as the rules see it: its tree, its names, and how to report."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

from kernel_smith.evaluation.screen.scopes import Names
from kernel_smith.records import Finding, Reason


class Reference(NamedTuple):
    """A place that names something imported or built in."""

    origin: str
    node: ast.stmt | ast.expr
    is_import: bool


class Code:
    """One parsed candidate."""

    def __init__(self, tree: ast.Module, name: str) -> None:
        self.tree = tree
        self.name = name
        self.names = Names(tree)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def references(self) -> list[Reference]:
        """Every import, and every longest dotted name that is read, with its origin."""
        return [*self._imports(), *self._uses()]

    def finding(self, reason: Reason, node: ast.stmt | ast.expr, what: str) -> Finding:
        message = f"{self.name}:{node.lineno}: {what}"
        return Finding(reason=reason, line=node.lineno, message=message)

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Every call of something with an origin."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                origin = self.names.origin(node.func)
                if origin is not None:
                    yield origin, node

    def _imports(self) -> Iterator[Reference]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield Reference(alias.name, node, is_import=True)
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                for alias in node.names:
                    yield Reference(f"{node.module}.{alias.name}", node, is_import=True)

    def _uses(self) -> Iterator[Reference]:
        inner = {node.value for node in self.nodes if isinstance(node, ast.Attribute)}
        for node in self.nodes:
            if isinstance(node, (ast.Attribute, ast.Name, ast.Subscript)):
                is_read = isinstance(node.ctx, ast.Load)
            else:
                is_read = isinstance(node, ast.Call)
            if is_read and node not in inner:
                assert isinstance(node, ast.expr)
                origin = self.names.origin(node)
                if origin is not None:
                    yield Reference(origin, node, is_import=False)


Rule: TypeAlias = Callable[[Code], Iterator[Finding]]


def is_under(origin: str, owner: str) -> bool:
    """Whether a dotted name is `owner` or something inside it."""
    return origin == owner or origin.startswith(f"{owner}.")
