"""Which steps teach the same, and which references ask for the same: as hashes.

Wording, formatting and numbers do not count. A step that changes nothing but numbers is told apart
by them, since they are all that it teaches.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache

from kernel_smith.programs.normalise import program
from kernel_smith.programs.parsing import parse_python
from kernel_smith.records import TrainingStep

_DIGEST = 16
_REMEMBERED = 512
_NUMBER = re.compile(r"'?\.?\d[\w.']*")
_INPUTS = frozenset({"get_inputs", "get_init_inputs"})
_GIVEN = frozenset({"forward", "__init__"})


def step_key(step: TrainingStep) -> bytes:
    """Equal for steps that make nearly the same change to nearly the same program."""
    before = step.parent.candidate.source if step.parent else step.task.source
    after = step.child.candidate.source
    shapes = _shape(before), _shape(after)
    if shapes[0] == shapes[1]:
        shapes = _digest(program(before).atoms), _digest(program(after).atoms)
    return _digest((step.child.candidate.backend, *(shape.hex() for shape in shapes)))


@lru_cache(maxsize=_REMEMBERED)
def reference_key(source: str) -> bytes:
    """Equal for task files whose references compute the same way.

    Names of arguments, variables and layers do not count, nor do numbers, and neither does how
    inputs are made: a task in other sizes is no other task.
    """
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError):
        return _digest((source,))
    kept = [node for node in tree.body if _is_reference(node)]
    blanked = _Blanked(kept)
    dumped = [ast.dump(blanked.visit(node)) for node in kept]
    return _digest(tuple(dumped))


@lru_cache(maxsize=_REMEMBERED)
def _shape(source: str) -> bytes:
    return _digest(
        tuple("0" if _NUMBER.fullmatch(atom) else atom for atom in program(source).atoms)
    )


def _digest(parts: tuple[str, ...]) -> bytes:
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=_DIGEST).digest()


def _is_reference(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name not in _INPUTS


class _Blanked(ast.NodeTransformer):
    """Numbers become 0; names that the author chose are numbered in the order of appearance."""

    def __init__(self, nodes: list[ast.stmt]) -> None:
        self._chosen = {name for node in nodes for name in _bound(node)}
        self._names: dict[str, str] = {}

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        return ast.Constant(0) if is_number else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._name(node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        owned = isinstance(node.value, ast.Name) and node.value.id == "self"
        name = self._name(node.attr) if owned else node.attr
        return ast.Attribute(self.visit(node.value), name, node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._name(node.arg), None)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = node.value or ast.Constant(None)
        return ast.Assign([self.visit(node.target)], self.visit(value))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._definition(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._definition(node)

    def _definition(self, node: ast.ClassDef | ast.FunctionDef) -> ast.AST:
        node.name = self._name(node.name)
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        return self.generic_visit(node)

    def _name(self, name: str) -> str:
        if name not in self._chosen or name in _GIVEN:
            return name
        return self._names.setdefault(name, f"<{len(self._names)}>")


def _bound(tree: ast.AST) -> Iterator[str]:
    """The names that are defined here: of functions, classes, arguments, variables and layers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
