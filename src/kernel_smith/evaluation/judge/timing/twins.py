"""Programs with different texts that compile to the same: many a change, the compiler undoes.

The program around the kernels is compared as it is written, without the kernels' own texts; the
kernels are compared as machine code.
"""

from __future__ import annotations

import ast
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from kernel_smith.records import Evaluation

_MOST_REMEMBERED = 256


class Twins:
    """Evaluations of a task by what the program compiled to."""

    def __init__(self) -> None:
        self._timed: OrderedDict[str, Evaluation] = OrderedDict()

    def remember(self, key: str, evaluation: Evaluation) -> None:
        self._timed[key] = evaluation
        if len(self._timed) > _MOST_REMEMBERED:
            self._timed.popitem(last=False)

    def find(self, key: str, candidate: str) -> Evaluation | None:
        """That of another candidate: one that is judged again wants to be timed again."""
        found = self._timed.get(key)
        return None if found is None or found.candidate_hash == candidate else found


def fingerprint(source: str, kernel_texts: Iterable[str], products: Iterable[Path]) -> str | None:
    """The same for programs that differ in what compilation removes; None where none can tell."""
    try:
        skeleton = _Skeleton(frozenset(kernel_texts)).visit(ast.parse(source))
        digest = hashlib.sha256(ast.dump(skeleton).encode())
    except RecursionError:  # nested deeper than such a tree can be walked
        return None
    for product in sorted(hashlib.sha256(path.read_bytes()).digest() for path in products):
        digest.update(product)
    return digest.hexdigest()


class _Skeleton(ast.NodeTransformer):
    def __init__(self, kernel_texts: frozenset[str]) -> None:
        self._kernel_texts = kernel_texts

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("kernel") if node.value in self._kernel_texts else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if any(_is_jit(decorator) for decorator in node.decorator_list):
            node.body = [ast.Pass()]  # the signature stays: launches pass by name, and defaults
        return node


def _is_jit(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr == "jit"
