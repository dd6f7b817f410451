"""Two extracts are the same if they differ in wording only, or in the names of definitions."""

from __future__ import annotations

import ast

from kernel_smith.programs.normalise import program
from kernel_smith.records import content_hash


def structure(text: str) -> str:
    """Equal for texts that differ in names of definitions, arguments and locals, or in comments."""
    tree = ast.parse(text)
    defined = [
        statement.name
        for statement in tree.body
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    numbered = {name: f"definition_{number}" for number, name in enumerate(defined)}
    renamed = ast.unparse(_Renaming(numbered).visit(tree))
    return content_hash("\n".join(program(renamed).atoms))


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._names.get(node.name, node.name)
        outer = self._names
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        own = {argument.arg: f"argument_{n}" for n, argument in enumerate(arguments)}
        self._names = outer | own
        self.generic_visit(node)
        self._names = outer
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._names.get(node.arg, node.arg)
        node.annotation = None
        return node
