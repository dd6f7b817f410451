"""C++ kernels of our own: a function for each call, with its sizes and layouts as constants."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kernel_smith.proposers.seed.library_calls import (
    Attention,
    Convolution,
    EmbeddingBag,
    Product,
    Scan,
)
from kernel_smith.proposers.seed.own_kernels import OwnKernels, Visit

Call = TypeVar("Call", Product, Convolution, Attention, EmbeddingBag, Scan)

_TYPES = {"torch.float32": "float", "torch.float64": "double"}
_INDICES = {"torch.int64": "int64_t", "torch.int32": "int32_t"}
_GRAM_COLUMNS = 256  # with more of them a general product makes better use of the cache
_FEW_CHANNELS = 4  # of a group: so small matrices are no work for a product


class CppKernels(OwnKernels):
    """Instances of the templates in `templates/*.hpp`, such as `Product` and `Attention`."""

    device = "cpu"

    def _multiply(self, product: Product, visit: Visit) -> list[str]:
        kind = _TYPES.get(product.dtype)
        if kind is None:
            return []
        rows, inner, columns = product.sizes
        prefix = f"{product.batch}x" if product.batch > 1 else ""
        if product.is_gram and columns <= min(inner, _GRAM_COLUMNS):
            name = self._write(f"gram_{prefix}{inner}x{columns}", _gram, kind, product)
            return [_launch(name, product.operands[1:], visit)]
        verb = "multiply_and_add" if product.bias else "multiply"
        name = self._write(f"{verb}_{prefix}{rows}x{inner}x{columns}", _product, kind, product)
        return [_launch(name, product.operands, visit)]

    def _convolve(self, found: Convolution, visit: Visit) -> str | None:
        kind = _TYPES.get(found.dtype)
        if kind is None or not found.y.has_flat_images:
            return None
        if _spreads(found) and not found.x.has_flat_images:
            return None
        write = _writer_for(found)
        verb = "convolve_transposed" if found.transposed else "convolve"
        taps = "x".join(str(extent) for extent in found.weight.size[2:] if extent > 1) or "1"
        inside, outside = found.channels
        base = f"{verb}_{taps}_from_{found.groups * inside}_to_{found.groups * outside}"
        name = self._write(base, write, kind, found)
        operands = [found.bias, found.x, found.weight, found.y]
        return _launch(name, [one.passed for one in operands if one is not None], visit)

    def _attend(self, found: Attention, visit: Visit) -> list[str]:
        kind = _TYPES.get(found.dtype)
        if kind is None or found.k.size[1] != found.q.size[1]:  # several heads share keys
            return []
        batches, heads, rows, keys, width, _ = found.sizes
        base = f"attend_{batches}x{heads}x{rows}x{keys}x{width}"
        name = self._write(base, _attention, kind, found)
        operands = [found.q, found.k, found.v, found.mask, found.result]
        return [_launch(name, [one.passed for one in operands if one is not None], visit)]

    def _sum_bags(self, found: EmbeddingBag, visit: Visit) -> list[str]:
        kind = _TYPES.get(found.dtype)
        if kind is None or found.index not in _INDICES:
            return []
        ids, (bags, width) = found.ids.size[0], found.result.size
        name = self._write(f"sum_bags_{bags}x{ids}x{width}", _embedding_bag, kind, found)
        operands = [found.table, found.ids, found.offsets, found.weights, found.result]
        return [_launch(name, [one.passed for one in operands if one is not None], visit)]

    def _scan(self, found: Scan, visit: Visit) -> list[str]:
        kind = _TYPES.get(found.dtype)
        if kind is None:
            return []
        base = f"{found.verb}_along_{'x'.join(map(str, found.sizes))}"
        name = self._write(base, _running, kind, found)
        return [_launch(name, [found.x.passed, found.result.passed], visit)]

    def _write(
        self, base: str, write: Callable[[str, str, Call], str], kind: str, found: Call
    ) -> str:
        """Keep a function under its name, or a similar one: calls differ in what names do not say,
        such as types and layouts."""
        for name in itertools.chain([base], (f"{base}_{number}" for number in itertools.count(2))):
            text = write(name, kind, found)
            if self.texts.setdefault(name, text) == text:
                break
        return name


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


def _gram(name: str, kind: str, product: Product) -> str:
    _, x, c, _ = product.layouts
    _, step, c_step = product.steps
    layouts = ", ".join(f"Layout<{down}, {right}>" for down, right in (x, c))
    _, inner, columns = product.sizes
    return (
        f'extern "C" void {name}(const {kind}* x, {kind}* c)\n{{\n'
        f"    Gram<{kind}, {columns}, {inner}, {layouts}>::multiply("
        f"x, c, {product.batch}, {step}, {c_step});\n}}"
    )


def _writer_for(found: Convolution) -> Callable[[str, str, Convolution], str]:
    if _is_depthwise(found):
        return _depthwise
    return _spreading if _spreads(found) else _convolution


def _is_depthwise(found: Convolution) -> bool:
    inside, outside = found.channels
    return found.groups > 1 and inside * outside <= _FEW_CHANNELS and not found.transposed


def _spreads(found: Convolution) -> bool:
    """Tell whether patches of x would mostly hold zeros, or take longer to gather than the parts of
    a result that x is spread into."""
    inside, outside = found.channels
    small = outside <= 2 * inside and found.x.has_flat_images
    return found.transposed and (max(found.step) > 1 or small)


def _convolution(name: str, kind: str, found: Convolution) -> str:
    instance = (
        f"Convolution<{kind}, {_numbers(found)}, Size, Result, Taps, Step, Padding, Dilation,\n"
        f"                {str(found.transposed).lower()}, X, Weight, Y>"
    )
    return _convolving(name, kind, found, instance)


def _spreading(name: str, kind: str, found: Convolution) -> str:
    instance = (
        f"Spreading<{kind}, {_numbers(found)}, Size, Result, Taps, Step, Padding, Dilation,\n"
        "              X, Weight, Y>"
    )
    return _convolving(name, kind, found, instance)


def _depthwise(name: str, kind: str, found: Convolution) -> str:
    instance = (
        f"Depthwise<{kind}, {_numbers(found)}, Size, Result, Taps, Step, Padding, Dilation,\n"
        "              X, Weight, Y>"
    )
    return _convolving(name, kind, found, instance)


def _numbers(found: Convolution) -> str:
    return _list((found.x.size[0], found.groups, *found.channels))


def _convolving(name: str, kind: str, found: Convolution, instance: str) -> str:
    boxes = "\n".join(
        f"    using {key.capitalize()} = Box<{_list(box)}>;" for key, box in found.boxes.items()
    )
    strides = "\n".join(
        f"    using {key} = Strides<{_list(operand.stride)}>;"
        for key, operand in (("X", found.x), ("Weight", found.weight), ("Y", found.y))
    )
    bias = [f"const {kind}* bias"] if found.bias else []
    parameters = [*bias, f"const {kind}* x", f"const {kind}* weight", f"{kind}* y"]
    return (
        f'extern "C" void {name}({", ".join(parameters)})\n{{\n{boxes}\n{strides}\n'
        f"    {instance}::convolve(\n"
        f"        x, weight, y, {'bias' if bias else 'nullptr'});\n}}"
    )


def _attention(name: str, kind: str, found: Attention) -> str:
    named = {"Q": found.q, "K": found.k, "V": found.v, "Y": found.result}
    named |= {"M": found.mask} if found.mask else {}
    strides = "\n".join(
        f"    using {key} = Heads<{_list(operand.stride)}>;" for key, operand in named.items()
    )
    flags = f"{str(found.causal).lower()}, {str(found.mask is not None).lower()}"
    mask = [f"const {kind}* mask"] if found.mask else []
    inputs = [f"const {kind}* {operand}" for operand in "qkv"]
    return (
        f'extern "C" void {name}({", ".join([*inputs, *mask, f"{kind}* y"])})\n{{\n{strides}\n'
        f"    Attention<{kind}, {_list(found.sizes)}, {flags}, {', '.join(named)}>::attend(\n"
        f"        q, k, v, y, {'mask' if mask else 'nullptr'}, {found.scale!r});\n}}"
    )


def _embedding_bag(name: str, kind: str, found: EmbeddingBag) -> str:
    index = _INDICES[found.index]
    bags, width = found.result.size
    numbers = _list((width, found.ids.size[0], found.offsets.size[0], bags))
    weights = [f"const {kind}* weights"] if found.weights else []
    inputs = [f"const {kind}* table", f"const {index}* ids", f"const {index}* offsets", *weights]
    return (
        f'extern "C" void {name}({", ".join([*inputs, f"{kind}* y"])})\n{{\n'
        f"    EmbeddingBag<{kind}, {index}, {numbers}, {str(found.mean).lower()}>::sum(\n"
        f"        table, ids, offsets, {'weights' if weights else 'nullptr'}, y);\n}}"
    )


def _running(name: str, kind: str, found: Scan) -> str:
    return (
        f'extern "C" void {name}(const {kind}* x, {kind}* y)\n{{\n'
        f"    Scan<{kind}, {_list(found.sizes)}>::{found.verb}(x, y);\n}}"
    )


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
