"""Kernels of our own in place of library calls: what a seed carries, and how it launches them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from kernel_smith.proposers.seed.library_calls import Layouts, Product
from kernel_smith.proposers.seed.templates import template
from kernel_smith.records import Precision

_CPP_TYPES = {"torch.float32": "float", "torch.float64": "double"}
_TRITON_TYPES = ("torch.float32", "torch.float16", "torch.bfloat16")
_SMALLEST_BLOCK = 16  # of what Triton multiplies
_WARPS, _STAGES, _GROUP = 8, 3, 8


class OwnKernels(ABC):
    """Writes kernels for the library calls of one generated function, and keeps their texts."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.texts: dict[str, str] = {}
        self._layouts = Layouts(body)

    def replace(
        self, method: str, call: ast.Call, visit: Callable[[ast.expr], ast.expr]
    ) -> ast.expr | None:
        """What launches a kernel in place of a call; None where the call has to stay."""
        product = self._layouts.product(method, call)
        return None if product is None else self._launch(product, visit)

    @abstractmethod
    def _launch(
        self, product: Product, visit: Callable[[ast.expr], ast.expr]
    ) -> ast.expr | None: ...


class CppKernels(OwnKernels):
    """A function for each product, with its sizes and layouts as constants."""

    def _launch(self, product: Product, visit: Callable[[ast.expr], ast.expr]) -> ast.expr | None:
        kind = _CPP_TYPES.get(product.dtype)
        if kind is None:
            return None
        rows, inner, columns = product.sizes
        prefix = f"{product.batch}x" if product.batch > 1 else ""
        verb = "multiply_and_add" if product.bias else "multiply"
        name = f"{verb}_{prefix}{rows}x{inner}x{columns}"
        self.texts[name] = _cpp_function(name, kind, product)
        operands = ", ".join(ast.unparse(visit(operand)) for operand in product.operands)
        return ast.parse(f"kernels.{name}({operands})", mode="eval").body


def _cpp_function(name: str, kind: str, product: Product) -> str:
    layouts = [f"Layout<{down}, {right}>" for down, right in product.layouts]
    numbers = ", ".join(map(str, product.sizes))
    bias = [f"const {kind}* bias"] if product.bias else []
    parameters = [*bias, f"const {kind}* a", f"const {kind}* b", f"{kind}* c"]
    begin = "bias" if product.bias else "nullptr"
    return (
        f'extern "C" void {name}({", ".join(parameters)})\n{{\n'
        f"    Product<{kind}, {numbers}, {', '.join(layouts)}>::multiply(\n"
        f"        a, b, c, {begin}, {product.batch}, {', '.join(map(str, product.steps))});\n}}"
    )


class TritonKernels(OwnKernels):
    """One kernel for all products; a launch says sizes, layouts and blocks."""

    def __init__(self, body: Sequence[ast.stmt], precision: Precision) -> None:
        super().__init__(body)
        self._precision = "ieee" if precision is Precision.STRICT else "tf32"

    def _launch(self, product: Product, visit: Callable[[ast.expr], ast.expr]) -> ast.expr | None:
        if product.dtype not in _TRITON_TYPES:
            return None
        self.texts["multiply"] = template("product_triton.txt").strip()
        rows, inner, columns = product.sizes
        blocks = {
            "BLOCK_ROWS": _block(rows, 128),
            "BLOCK_COLUMNS": _block(columns, 128),
            "BLOCK_INNER": _block(inner, 32 if product.dtype == "torch.float32" else 64),
        }
        names = [f"{m}_{way}" for m in ("A", "B", "C", "BIAS") for way in ("DOWN", "RIGHT")]
        distances = [distance for layout in product.layouts for distance in layout]
        numbers: dict[str, object] = {
            **dict(zip(("ROWS", "INNER", "COLUMNS"), product.sizes, strict=True)),
            **dict(zip(names, distances, strict=True)),
            **dict(zip(("A_STEP", "B_STEP", "C_STEP"), product.steps, strict=True)),
            "PRECISION": self._precision,
            **blocks,
            "GROUP": _GROUP,
            "num_warps": _WARPS if blocks["BLOCK_ROWS"] * blocks["BLOCK_COLUMNS"] > 8192 else 4,
            "num_stages": _STAGES,
        }
        count = f"triton.cdiv({rows}, {blocks['BLOCK_ROWS']}) * "
        count += f"triton.cdiv({columns}, {blocks['BLOCK_COLUMNS']})"
        a, b, c = (ast.unparse(visit(o.passed)) for o in (product.a, product.b, product.c))
        bias = ast.unparse(visit(product.bias.passed)) if product.bias else "None"
        given = ", ".join(f"{name}={value!r}" for name, value in numbers.items())
        text = f"multiply[({count}, {product.batch})]({a}, {b}, {c}, {bias}, {given})"
        return ast.parse(text, mode="eval").body


def _block(size: int, largest: int) -> int:
    """A power of two that is not much larger than what there is."""
    return min(largest, max(_SMALLEST_BLOCK, 1 << (size - 1).bit_length()))
