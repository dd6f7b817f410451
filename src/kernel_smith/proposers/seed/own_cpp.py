"""C++ kernels of our own: a function for each call, with its sizes and layouts as constants."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from kernel_smith.proposers.seed.library_calls import Convolution, Product
from kernel_smith.proposers.seed.own_kernels import OwnKernels, Visit

_TYPES = {"torch.float32": "float", "torch.float64": "double"}


class CppKernels(OwnKernels):
    """Instances of the templates `Product` and `Convolution`."""

    device = "cpu"

    def _multiply(self, product: Product, visit: Visit) -> str | None:
        kind = _TYPES.get(product.dtype)
        if kind is None:
            return None
        rows, inner, columns = product.sizes
        prefix = f"{product.batch}x" if product.batch > 1 else ""
        verb = "multiply_and_add" if product.bias else "multiply"
        name = f"{verb}_{prefix}{rows}x{inner}x{columns}"
        self.texts[name] = _product(name, kind, product)
        return _launch(name, product.operands, visit)

    def _convolve(self, found: Convolution, visit: Visit) -> str | None:
        kind = _TYPES.get(found.dtype)
        if kind is None or not found.has_flat_result:
            return None
        verb = "convolve_transposed" if found.transposed else "convolve"
        taps = "x".join(str(extent) for extent in found.weight.size[2:] if extent > 1) or "1"
        inside, outside = found.channels
        base = f"{verb}_{taps}_from_{found.groups * inside}_to_{found.groups * outside}"
        # Others may differ in padding, or in the size of images.
        alike = [name for name in self.texts if name.startswith(base)]
        name = base if not alike else f"{base}_{len(alike) + 1}"
        self.texts[name] = _convolution(name, kind, found)
        operands = [found.bias, found.x, found.weight, found.y]
        return _launch(name, [one.passed for one in operands if one is not None], visit)


def _launch(name: str, operands: Iterable[ast.expr], visit: Visit) -> str:
    return f"kernels.{name}({', '.join(ast.unparse(visit(operand)) for operand in operands)})"


def _product(name: str, kind: str, product: Product) -> str:
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


def _convolution(name: str, kind: str, found: Convolution) -> str:
    boxes = "\n".join(
        f"    using {key.capitalize()} = Box<{_list(box)}>;" for key, box in found.boxes.items()
    )
    strides = "\n".join(
        f"    using {key} = Strides<{_list(operand.stride)}>;"
        for key, operand in (("X", found.x), ("Weight", found.weight), ("Y", found.y))
    )
    numbers = _list((found.x.size[0], found.groups, *found.channels))
    bias = [f"const {kind}* bias"] if found.bias else []
    parameters = [*bias, f"const {kind}* x", f"const {kind}* weight", f"{kind}* y"]
    return (
        f'extern "C" void {name}({", ".join(parameters)})\n{{\n{boxes}\n{strides}\n'
        f"    Convolution<{kind}, {numbers}, Size, Result, Taps, Step, Padding, Dilation,\n"
        f"                {str(found.transposed).lower()}, X, Weight, Y>::convolve(\n"
        f"        x, weight, y, {'bias' if bias else 'nullptr'});\n}}"
    )


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
