"""Kernels of our own in place of library calls: what a seed carries, and how it launches them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kernel_smith.proposers.seed.library_calls import (
    KEPT_ATTENTION,
    RUNNING,
    Attention,
    Convolution,
    EmbeddingBag,
    Layouts,
    Operand,
    Product,
    Scan,
)

Visit: TypeAlias = Callable[[ast.AST], ast.AST]
"""Rewrites an expression or a statement of the generated function."""

_LIBRARY = "extern_kernels"
_CPU_ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"
_BAGS = ("aten._embedding_bag_forward_only.default", "aten._embedding_bag.default")


class OwnKernels(ABC):
    """Writes kernels for the library calls of one generated function, and keeps their texts."""

    device: str

    def __init__(self, body: Sequence[ast.stmt], types: Mapping[str, str]) -> None:
        self.texts: dict[str, str] = {}
        self._layouts = Layouts(body, types)

    def replace(self, statement: ast.stmt, visit: Visit) -> list[ast.stmt] | None:
        """Return what does the same with a kernel of ours; None where the library's call has to
        stay."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name(id), method)) as call) if (
                id == _LIBRARY
            ):
                product = self._layouts.product(method, call)
                launches = self._multiply(product, visit) if product else []
                return [_statement(text) for text in launches] or None
            case ast.Assign(
                targets=[ast.Name(result)],
                value=ast.Call(func=ast.Attribute(ast.Name(id), "convolution")) as call,
            ) if id == _LIBRARY:
                found = self._layouts.convolution(result, call)
                launch = self._convolve(found, visit) if found else None
                if not found or not launch:
                    return None
                memory = self._memory(found.result, found.dtype, visit)
                return [_statement(f"{result} = {memory}"), _statement(launch)]
            case ast.Assign(targets=[ast.Name(result)], value=ast.Call(func=function) as call):
                return self._replace_operator(result, ast.unparse(function), call, visit)
        return None

    def _replace_operator(
        self, result: str, function: str, call: ast.Call, visit: Visit
    ) -> list[ast.stmt] | None:
        found: Attention | EmbeddingBag | Scan | None = None
        launches: list[str] = []
        single = function == KEPT_ATTENTION or function.endswith(tuple(RUNNING))
        form = "{}" if single else "({},)"  # others have several results
        if function.endswith(tuple(RUNNING)):
            found = scan = self._layouts.scan(result, call)
            launches = self._scan(scan, visit) if scan else []
        elif function.endswith(_BAGS):
            found = bags = self._layouts.embedding_bag(result, call)
            launches = self._sum_bags(bags, visit) if bags else []
        elif function.endswith(_CPU_ATTENTION) or function == KEPT_ATTENTION:
            read = self._layouts.kept_attention if single else self._layouts.attention
            found = attention = read(result, call)
            launches = self._attend(attention, visit) if attention else []
        if not found or not launches:
            return None
        memory = form.format(self._memory(found.result, found.dtype, visit))
        return [_statement(text) for text in (f"{result} = {memory}", *launches)]

    def _memory(self, result: Operand, dtype: str, visit: Visit) -> str:
        text = f"empty_strided_{self.device}({result.size}, {result.stride}, {dtype})"
        return ast.unparse(visit(ast.parse(text, mode="eval").body))

    @abstractmethod
    def _multiply(self, product: Product, visit: Visit) -> list[str]:
        """Statements that multiply; none if there is no kernel for such a product."""

    @abstractmethod
    def _convolve(self, found: Convolution, visit: Visit) -> str | None:
        """Return the text of a launch, whose result has been allocated; None if there is no
        kernel."""

    @abstractmethod
    def _attend(self, found: Attention, visit: Visit) -> list[str]:
        """Statements that attend, whose result has been allocated; none if there is no kernel."""

    def _scan(self, found: Scan, visit: Visit) -> list[str]:
        """Statements that sum or multiply along an axis, whose result has been allocated; none if
        there is no kernel."""
        return []

    def _sum_bags(self, found: EmbeddingBag, visit: Visit) -> list[str]:
        """Statements that sum, whose result has been allocated; none if there is no kernel."""
        return []


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]
