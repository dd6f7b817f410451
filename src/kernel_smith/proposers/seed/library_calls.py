"""Reads the library calls of a generated function: which tensors they get, and how these lie."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

_ALLOCATIONS = ("empty_strided_cpu", "empty_strided_cuda")


@dataclass(frozen=True)
class Operand:
    """A tensor of a call: what to pass, and how its elements lie from there."""

    passed: ast.expr
    size: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class Product:
    """A product of matrices, or of as many pairs as `batch` says, that all lie a `step` apart."""

    dtype: str
    bias: Operand | None
    a: Operand
    b: Operand
    c: Operand

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, what is summed over, columns."""
        rows, inner = self.a.size[-2:]
        return rows, inner, self.b.size[-1]

    @property
    def batch(self) -> int:
        return self.c.size[0] if len(self.c.size) == 3 else 1

    @property
    def steps(self) -> tuple[int, ...]:
        matrices = (self.a, self.b, self.c)
        return tuple(m.stride[0] if self.batch > 1 else 0 for m in matrices)

    @property
    def layouts(self) -> tuple[tuple[int, ...], ...]:
        """How far elements of A, B, C and bias lie apart, down and to the right."""
        stride = self.bias.stride if self.bias else (0, 0)
        bias = stride if len(stride) == 2 else (0, *stride)
        return (*(m.stride[-2:] for m in (self.a, self.b, self.c)), bias)

    @property
    def operands(self) -> list[ast.expr]:
        """What a kernel is given, in the order of a call: a bias comes first."""
        return [o.passed for o in (self.bias, self.a, self.b, self.c) if o is not None]


class Layouts:
    """What a generated function says of its tensors."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self._layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._types: dict[str, str] = {}
        for statement in body:
            for node in ast.walk(statement):
                self._learn(node)

    def product(self, method: str, call: ast.Call) -> Product | None:
        """A call of the library as a product; None if it is none, or not a plain one."""
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        target = keywords.pop("out", None)
        usual = all(ast.unparse(value) == "1" for value in keywords.values())
        counts = {"mm": 2, "bmm": 2, "addmm": 3, "bias_addmm": 3}
        if len(call.args) != counts.get(method) or not isinstance(target, ast.Name) or not usual:
            return None
        found = [self._operand(argument) for argument in [*call.args, target]]
        known = [operand for operand in found if operand is not None]
        dtype = self._types.get(target.id)
        if dtype is None or len(known) < len(found):
            return None
        *bias, a, b, c = known
        return Product(dtype, bias[0] if bias else None, a, b, c)

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.Call(func=ast.Name("assert_size_stride"), args=[ast.Name(name), *parts]):
                self._note(name, parts)
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Name(function), args=parts),
            ) if function in _ALLOCATIONS:
                self._note(name, parts)
                self._types[name] = ast.unparse(parts[2])
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Name("reinterpret_tensor"), args=[ast.Name(of), *parts]),
            ):
                self._note(name, parts)
                if of in self._types:
                    self._types[name] = self._types[of]

    def _note(self, name: str, parts: Sequence[ast.expr]) -> None:
        self._layouts[name] = (ast.literal_eval(parts[0]), ast.literal_eval(parts[1]))

    def _operand(self, node: ast.expr) -> Operand | None:
        """A kernel takes the place where elements begin; it knows itself where they lie."""
        match node:
            case ast.Name(id=name) if name in self._layouts:
                return Operand(node, *self._layouts[name])
            case ast.Call(
                func=ast.Name("reinterpret_tensor"),
                args=[ast.Name(), size, stride, ast.Constant(value=0)],
            ):
                return Operand(node.args[0], ast.literal_eval(size), ast.literal_eval(stride))
        return None
