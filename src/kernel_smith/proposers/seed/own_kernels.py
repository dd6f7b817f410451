"""Kernels of our own in place of library calls, where a seed is to have none of these.

Sizes and layouts are read from the compiler's text, so that a kernel is made for them alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TYPES = {"torch.float32": "float", "torch.float64": "double"}


@dataclass(frozen=True)
class _Tensor:
    """An argument of a call: what to pass, and how its elements lie from there."""

    passed: ast.expr
    size: tuple[int, ...]
    stride: tuple[int, ...]


class OwnKernels:
    """Writes kernels for the library calls of one generated function."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.texts: dict[str, str] = {}
        self._layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._types: dict[str, str] = {}
        for statement in body:
            for node in ast.walk(statement):
                self._learn(node)

    def replace(self, method: str, call: ast.Call) -> tuple[str, list[ast.expr]] | None:
        """The kernel in place of a library call, and its arguments; None if there is none."""
        write = _WRITERS.get(method)
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        target = keywords.pop("out", None)
        usual = all(ast.unparse(value) == "1" for value in keywords.values())
        if write is None or not isinstance(target, ast.Name) or not usual:
            return None
        kind = _TYPES.get(self._types.get(target.id, ""))
        tensors = [self._tensor(argument) for argument in [*call.args, target]]
        known = [tensor for tensor in tensors if tensor is not None]
        if kind is None or len(known) < len(tensors):
            return None
        name, text = write(kind, known)
        self.texts[name] = text
        return name, [tensor.passed for tensor in known]

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Call(func=ast.Name("assert_size_stride"), args=[ast.Name(name), *parts]):
                self._note(name, parts)
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Name("empty_strided_cpu"), args=parts),
            ):
                self._note(name, parts)
                self._types[name] = ast.unparse(parts[2])
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Name("reinterpret_tensor"), args=[ast.Name(of), *parts]),
            ):
                self._note(name, parts)
                self._types[name] = self._types.get(of, "")

    def _note(self, name: str, parts: Sequence[ast.expr]) -> None:
        self._layouts[name] = (ast.literal_eval(parts[0]), ast.literal_eval(parts[1]))

    def _tensor(self, node: ast.expr) -> _Tensor | None:
        """A kernel takes the place where elements begin; it knows itself where they lie."""
        match node:
            case ast.Name(id=name) if name in self._layouts:
                return _Tensor(node, *self._layouts[name])
            case ast.Call(
                func=ast.Name("reinterpret_tensor"),
                args=[ast.Name(), size, stride, ast.Constant(value=0)],
            ):
                return _Tensor(node.args[0], ast.literal_eval(size), ast.literal_eval(stride))
        return None


def _product(kind: str, tensors: Sequence[_Tensor]) -> tuple[str, str]:
    """A product of matrices, or of many pairs of them; a bias comes before them."""
    *bias, a, b, c = tensors
    (rows, inner), columns = a.size[-2:], b.size[-1]
    batch = c.size[0] if len(c.size) == 3 else 1
    steps = [str(t.stride[0]) if batch > 1 else "0" for t in (a, b, c)]
    layouts = [_layout(t.stride[-2:]) for t in (a, b, c)]
    if bias:
        stride = bias[0].stride
        layouts.append(_layout(stride if len(stride) == 2 else (0, *stride)))
    prefix = f"{batch}x" if batch > 1 else ""
    name = f"multiply_{'and_add_' if bias else ''}{prefix}{rows}x{inner}x{columns}"
    parameters = [f"const {kind}* bias"] * len(bias)
    parameters += [f"const {kind}* a", f"const {kind}* b", f"{kind}* c"]
    return name, (
        f'extern "C" void {name}({", ".join(parameters)})\n{{\n'
        f"    Product<{kind}, {rows}, {inner}, {columns}, {', '.join(layouts)}>::multiply(\n"
        f"        a, b, c, {'bias' if bias else 'nullptr'}, {batch}, {', '.join(steps)});\n}}"
    )


def _layout(stride: Sequence[int]) -> str:
    return f"Layout<{stride[0]}, {stride[1]}>"


_Write = Callable[[str, Sequence[_Tensor]], tuple[str, str]]
_WRITERS: dict[str, _Write] = dict.fromkeys(("mm", "addmm", "bias_addmm", "bmm"), _product)
