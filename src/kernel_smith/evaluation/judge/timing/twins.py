"""Programs with different texts that compile to the same: many a change, the compiler undoes.

The program around the kernels is compared as it is written, without the kernels' own texts; the
kernels are compared as machine code. That two programs look alike so is no proof: one may count the
remarks in its own source, and work as often. So a twin is timed as well, but briefly.
"""

from __future__ import annotations

import ast
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from kernel_smith.records import Evaluation, Options, Sampling, Timing

_MOST_REMEMBERED = 256
_BRIEFLY = Sampling(min_rounds=6, max_rounds=6, max_seconds=0.5)


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


def briefly(options: Options) -> Options:
    """How a program is timed to see whether it is what it looks like."""
    return options.model_copy(update={"sampling": _BRIEFLY, "profile": False})


def agree(mine: Timing, known: Timing) -> bool:
    """May a program that was timed briefly be as fast as its twin, on every workload?"""
    return all(
        own.speedup.high >= its.speedup.low and its.speedup.high >= own.speedup.low
        for one, other in zip(mine.workloads, known.workloads, strict=True)
        for own, its in zip(one.baselines, other.baselines, strict=True)
    )


def fingerprint(
    source: str, kernel_texts: Iterable[str], products: Iterable[Path], *, jitted: bool = False
) -> str | None:
    """The same for programs that differ in what compilation removes; None where none can tell.

    `jitted`: kernels are functions of the program, and their bodies are compiled.
    """
    try:
        skeleton = _Skeleton(frozenset(kernel_texts), jitted).visit(ast.parse(source))
        digest = hashlib.sha256(ast.dump(skeleton).encode())
    except RecursionError:  # nested deeper than such a tree can be walked
        return None
    for product in sorted(hashlib.sha256(path.read_bytes()).digest() for path in products):
        digest.update(product)
    return digest.hexdigest()


class _Skeleton(ast.NodeTransformer):
    def __init__(self, kernel_texts: frozenset[str], jitted: bool) -> None:
        self._kernel_texts = kernel_texts
        self._jitted = jitted

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("kernel") if node.value in self._kernel_texts else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if self._jitted and any(_is_jit(decorator) for decorator in node.decorator_list):
            node.body = [ast.Pass()]  # the signature stays: launches pass by name, and defaults
        return node


def _is_jit(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr == "jit"
