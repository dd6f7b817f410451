"""Kernels of our own in place of library calls: what a seed carries, and how it launches them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from kernel_smith.proposers.seed.library_calls import (
    KEPT_ATTENTION,
    Attention,
    Convolution,
    Layouts,
    Operand,
    Product,
)

Visit: TypeAlias = Callable[[ast.AST], ast.AST]
"""Rewrites an expression or a statement of the generated function."""

_LIBRARY = "extern_kernels"
_CPU_ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"


class OwnKernels(ABC):
    """Writes kernels for the library calls of one generated function, and keeps their texts."""

    device: str

    def __init__(self, body: Sequence[ast.stmt], types: Mapping[str, str]) -> None:
        self.texts: dict[str, str] = {}
        self._layouts = Layouts(body, types)

    def replace(self, statement: ast.stmt, visit: Visit) -> list[ast.stmt] | None:
        """What does the same with a kernel of ours; None where the library's call has to stay."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name(id), method)) as call) if (
                id == _LIBRARY
            ):
                product = self._layouts.product(method, call)
                launch = self._multiply(product, visit) if product else None
                return [_statement(launch)] if launch else None
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
                return self._replace_attention(result, ast.unparse(function), call, visit)
        return None

    def _replace_attention(
        self, result: str, function: str, call: ast.Call, visit: Visit
    ) -> list[ast.stmt] | None:
        found, form = None, "{}"
        if function.endswith(_CPU_ATTENTION):
            found, form = self._layouts.attention(result, call), "({},)"
        elif function == KEPT_ATTENTION:
            found = self._layouts.kept_attention(result, call)
        launches = self._attend(found, visit) if found else []
        if not found or not launches:
            return None
        memory = form.format(self._memory(found.result, found.dtype, visit))
        return [_statement(text) for text in (f"{result} = {memory}", *launches)]

    def _memory(self, result: Operand, dtype: str, visit: Visit) -> str:
        text = f"empty_strided_{self.device}({result.size}, {result.stride}, {dtype})"
        return ast.unparse(visit(ast.parse(text, mode="eval").body))

    @abstractmethod
    def _multiply(self, product: Product, visit: Visit) -> str | None:
        """The text of a launch; None if there is no kernel for such a product."""

    @abstractmethod
    def _convolve(self, found: Convolution, visit: Visit) -> str | None:
        """The text of a launch, whose result has been allocated; None if there is no kernel."""

    @abstractmethod
    def _attend(self, found: Attention, visit: Visit) -> list[str]:
        """Statements that attend, whose result has been allocated; none if there is no kernel."""


def _statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]
