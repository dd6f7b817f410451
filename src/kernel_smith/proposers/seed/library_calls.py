"""Reads the library calls of a generated function: which tensors they get, and how these lie."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEPT_ATTENTION = "torch.ops.kernel_smith.attend.default"
RUNNING = {"aten.cumsum.default": "sum", "aten.cumprod.default": "multiply"}
_FLOATING = tuple(f"torch.{name}" for name in ("float16", "bfloat16", "float32", "float64"))
_ALLOCATIONS = ("empty_strided_cpu", "empty_strided_cuda")


@dataclass(frozen=True)
class Operand:
    """A tensor of a call: what to pass, and how its elements lie from there."""

    passed: ast.expr
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def has_flat_images(self) -> bool:
        """Whether pixels of volumes are a fixed distance apart, from the first to the last."""
        _, _, _, height, width = self.size
        depth_step, row_step, step = self.stride[2:]
        return row_step == width * step and depth_step == height * row_step

    def transposed(self) -> Operand:
        """Return the same with its last two dimensions exchanged."""
        size, stride = self.size, self.stride
        return Operand(
            self.passed,
            (*size[:-2], size[-1], size[-2]),
            (*stride[:-2], stride[-1], stride[-2]),
        )


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
    def is_gram(self) -> bool:
        """Whether A is B transposed, so that what is below the diagonal of C is there above it."""
        if self.bias is not None or ast.unparse(self.a.passed) != ast.unparse(self.b.passed):
            return False
        return _turned(self.a.size) == self.b.size and _turned(self.a.stride) == self.b.stride

    @property
    def operands(self) -> list[ast.expr]:
        """What a kernel is given, in the order of a call: a bias comes first."""
        return [o.passed for o in (self.bias, self.a, self.b, self.c) if o is not None]


@dataclass(frozen=True)
class Convolution:
    """A convolution of images with a depth, a height and a width; those of others are 1."""

    dtype: str
    result: Operand  # as it is to be allocated
    x: Operand
    weight: Operand
    y: Operand
    bias: Operand | None
    step: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    groups: int

    @property
    def channels(self) -> tuple[int, int]:
        """How many a group has, of x and of the result."""
        return self.x.size[1] // self.groups, self.y.size[1] // self.groups

    @property
    def boxes(self) -> dict[str, tuple[int, ...]]:
        """Depths, heights and widths by their names, in the order in which kernels take them."""
        shapes = (self.x.size[2:], self.y.size[2:], self.weight.size[2:])
        names = ("SIZE", "RESULT", "TAPS", "STEP", "PADDING", "DILATION")
        values = (*shapes, self.step, self.padding, self.dilation)
        return dict(zip(names, values, strict=True))


@dataclass(frozen=True)
class Attention:
    """Scaled dot product attention; all operands have batches, heads, rows and elements."""

    dtype: str
    result: Operand  # as it is to be allocated
    q: Operand
    k: Operand
    v: Operand
    mask: Operand | None
    causal: bool
    scale: float

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batches, heads, rows, keys, the width of keys and of values."""
        return (*self.q.size[:3], *self.k.size[2:], self.v.size[3])


@dataclass(frozen=True)
class EmbeddingBag:
    """Sums, or means, of rows of a table, which ids name; offsets say where bags of ids begin."""

    dtype: str
    index: str  # the type of ids and offsets
    result: Operand  # as it is to be allocated
    table: Operand
    ids: Operand
    offsets: Operand
    weights: Operand | None
    mean: bool


@dataclass(frozen=True)
class Scan:
    """Running sums or products along one axis of a tensor in one piece."""

    verb: str
    dtype: str
    result: Operand  # as it is to be allocated
    x: Operand
    axis: int

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many elements lie outside of the axis, along it, and between its neighbours."""
        size = self.x.size or (1,)
        outer, inner = size[: self.axis], size[self.axis + 1 :]
        return math.prod(outer), size[self.axis], math.prod(inner)


class Layouts:
    """What a generated function says of its tensors; `types` are those of its arguments."""

    def __init__(self, body: Sequence[ast.stmt], types: Mapping[str, str]) -> None:
        self._layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._types: dict[str, str] = dict(types)
        self._first_of: dict[str, str] = {}  # of calls with several results
        for statement in body:
            for node in ast.walk(statement):
                self._learn(node)

    def product(self, method: str, call: ast.Call) -> Product | None:
        """Return a call of the library as a product; None if it is none, or not a plain one."""
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

    def convolution(self, result: str, call: ast.Call) -> Convolution | None:
        """Return a call of the library as a convolution; None where something about it is not
        known."""
        keywords = {str(keyword.arg): keyword.value for keyword in call.keywords}
        tensors = [*call.args, keywords.pop("bias", ast.Constant(None))][:3]
        bias = None if ast.unparse(tensors[2]) == "None" else self._operand(tensors[2])
        found = [self._operand(node) for node in (*tensors[:2], ast.Name(result, ast.Load()))]
        known = [operand for operand in found if operand is not None]
        dtype = self._types.get(result)
        if dtype is None or len(known) < 3 or (bias is None) != (ast.unparse(tensors[2]) == "None"):
            return None
        said: dict[str, Any] = {name: ast.literal_eval(node) for name, node in keywords.items()}
        x, weight, y = map(_with_depth, known)
        return Convolution(
            dtype=dtype,
            result=known[2],
            x=x,
            weight=weight,
            y=y,
            bias=bias,
            step=_three(said["stride"], 1),
            padding=_three(said["padding"], 0),
            dilation=_three(said["dilation"], 1),
            transposed=said["transposed"],
            groups=said["groups"],
        )

    def attention(self, result: str, call: ast.Call) -> Attention | None:
        """Return a call of the library as attention; None where something about it is not known."""
        names = ("query", "key", "value", "dropout_p", "is_causal")
        said = dict(zip(names, call.args, strict=False))
        said |= {str(keyword.arg): keyword.value for keyword in call.keywords}
        first = self._first_of.get(result)
        found = [self._operand(said[name]) for name in names[:3]]
        known = [operand for operand in found if operand is not None and len(operand.size) == 4]
        mask = said.get("attn_mask", ast.Constant(None))
        over = None if ast.unparse(mask) == "None" else self._mask(mask, known)
        lacks_mask = over is None and ast.unparse(mask) != "None"
        if first not in self._layouts or len(known) < 3 or lacks_mask:
            return None
        q, k, v = known
        dtype = self._type_of(said["query"])
        if dtype is None:
            return None
        scale = ast.literal_eval(said.get("scale", ast.Constant(None)))
        return Attention(
            dtype=dtype,
            result=Operand(ast.parse(f"{result}[0]", mode="eval").body, *self._layouts[first]),
            q=q,
            k=k,
            v=v,
            mask=over,
            causal=ast.literal_eval(said.get("is_causal", ast.Constant(False))),
            scale=float(q.size[-1] ** -0.5 if scale is None else scale),
        )

    def kept_attention(self, result: str, call: ast.Call) -> Attention | None:
        """Return a call of our own operation, which says how its result lies; its masks may be
        truths."""
        *tensors, causal, scale, by_rows = call.args
        q, k, v, mask = (self._operand(node) for node in tensors)
        dtype = self._type_of(tensors[0])
        masked = ast.unparse(tensors[3]) != "None"
        if q is None or k is None or v is None or dtype is None or masked != (mask is not None):
            return None
        batches, heads, rows, values = (*q.size[:3], v.size[3])
        outer = (values, heads * values) if ast.literal_eval(by_rows) else (rows * values, values)
        stride = (heads * rows * values, *outer, 1)
        return Attention(
            dtype=dtype,
            result=Operand(ast.Name(result, ast.Load()), (batches, heads, rows, values), stride),
            q=q,
            k=k,
            v=v,
            mask=_over_four_axes(mask) if mask else None,
            causal=ast.literal_eval(causal),
            scale=float(ast.literal_eval(scale)),
        )

    def embedding_bag(self, result: str, call: ast.Call) -> EmbeddingBag | None:
        """Return a call of the library as sums of bags; None where something is not known, or
        else."""
        names = (
            *("weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse"),
            *("per_sample_weights", "include_last_offset", "padding_idx"),
        )
        said = dict(zip(names, call.args, strict=False))
        said |= {str(keyword.arg): keyword.value for keyword in call.keywords}
        chosen = said.pop("per_sample_weights", ast.Constant(None))
        weighted = ast.unparse(chosen) != "None"
        tensors = [*(said[name] for name in names[:3]), *([chosen] if weighted else [])]
        found = [self._operand(node) for node in tensors]
        known = [one for one in found if one is not None and one.stride[-1:] == (1,)]
        first, dtype = self._first_of.get(result), self._type_of(said["weight"])
        index = {self._type_of(said[name]) for name in names[1:3]}
        mode = ast.literal_eval(said.get("mode", ast.Constant(0)))
        pads = ast.literal_eval(said.get("padding_idx", ast.Constant(-1))) >= 0
        if len(known) < len(found) or first not in self._layouts or dtype is None:
            return None
        table, ids, offsets, *weights = known
        if len(index) > 1 or mode not in (0, 1) or pads or table.stride[0] != table.size[1]:
            return None
        return EmbeddingBag(
            dtype=dtype,
            index=str(index.pop()),
            result=Operand(ast.parse(f"{result}[0]", mode="eval").body, *self._layouts[first]),
            table=table,
            ids=ids,
            offsets=offsets,
            weights=weights[0] if weights else None,
            mean=mode == 1,
        )

    def scan(self, result: str, call: ast.Call) -> Scan | None:
        """Return a call of the library as running sums or products; None where elements do not lie
        one by one."""
        said = dict(zip(("self", "dim", "dtype"), call.args, strict=False))
        said |= {str(keyword.arg): keyword.value for keyword in call.keywords}
        x, dtype = self._operand(said["self"]), self._type_of(said["self"])
        same_type = ast.unparse(said.get("dtype", ast.Constant(None))) == "None"
        if x is None or dtype is None or not same_type or x.stride != contiguous_strides(x.size):
            return None
        axis = ast.literal_eval(said["dim"]) % max(len(x.size), 1)
        verb = next(verb for name, verb in RUNNING.items() if ast.unparse(call.func).endswith(name))
        return Scan(verb, dtype, Operand(ast.Name(result, ast.Load()), x.size, x.stride), x, axis)

    def _mask(self, node: ast.expr, operands: Sequence[Operand]) -> Operand | None:
        """Return a mask of the operands' type."""
        mask = self._operand(node)
        types = {self._type_of(one) for one in (node, *(o.passed for o in operands))}
        return None if mask is None or len(types) > 1 else _over_four_axes(mask)

    def _type_of(self, node: ast.expr) -> str | None:
        inner = node.args[0] if isinstance(node, ast.Call) else node
        return self._types.get(inner.id) if isinstance(inner, ast.Name) else None

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
                self._inherit(name, of)
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Call(func=ast.Attribute(attr="convolution"), args=[ast.Name(of), *_]),
            ):
                self._inherit(name, of)
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.Call(func=function, args=[q, *_])
            ) if ast.unparse(function).endswith((KEPT_ATTENTION, *RUNNING)):
                dtype = self._type_of(q)
                if dtype in _FLOATING:  # sums of others are wider
                    self._types[name] = str(dtype)
            case ast.Assign(
                targets=[ast.Name(name)],
                value=ast.Subscript(value=ast.Name(of), slice=ast.Constant(0)),
            ):
                self._first_of[of] = name
            case ast.Assign(targets=[ast.Name(name)], value=ast.Name(of)):
                self._inherit(name, of)
                if of in self._layouts:
                    self._layouts[name] = self._layouts[of]

    def _note(self, name: str, parts: Sequence[ast.expr]) -> None:
        self._layouts[name] = (ast.literal_eval(parts[0]), ast.literal_eval(parts[1]))

    def _inherit(self, name: str, of: str) -> None:
        if of in self._types:
            self._types[name] = self._types[of]

    def _operand(self, node: ast.expr) -> Operand | None:
        """A kernel takes the place where elements begin; it knows itself where they lie."""
        match node:
            case ast.Name(id=name) if name in self._layouts:
                return Operand(node, *self._layouts[name])
            case ast.Call(
                func=ast.Name("reinterpret_tensor"),
                args=[ast.Name(of), size, stride, ast.Constant(value=int(offset))],
            ):
                lies = ast.literal_eval(size), ast.literal_eval(stride)
                return Operand(_beginning(node.args[0], of, lies, offset), *lies)
        return None


def _beginning(
    tensor: ast.expr, name: str, lies: tuple[tuple[int, ...], tuple[int, ...]], offset: int
) -> ast.expr:
    """Return the tensor itself, or all of it from an offset on that is looked at."""
    if offset == 0:
        return tensor
    span = 1 + sum((n - 1) * s for n, s in zip(*lies, strict=True))
    text = f"reinterpret_tensor({name}, ({span},), (1,), {offset})"
    return ast.parse(text, mode="eval").body


def _over_four_axes(mask: Operand) -> Operand:
    """With a size and a distance for each axis of the scores; 0 where all share elements."""
    size = (1,) * (4 - len(mask.size)) + mask.size
    stride = (0,) * (4 - len(mask.size)) + mask.stride
    moves = tuple(0 if n == 1 else s for n, s in zip(size, stride, strict=True))
    return Operand(mask.passed, size, moves)


def _turned(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes or strides of a matrix as those of its transpose."""
    return (*axes[:-2], axes[-1], axes[-2])


def _three(values: tuple[int, ...], fill: int) -> tuple[int, ...]:
    """The same for images with a depth; those without one have a depth of 1."""
    return (fill,) * (3 - len(values)) + tuple(values)


def _with_depth(operand: Operand) -> Operand:
    size, stride = operand.size, operand.stride
    outer = stride[2] * size[2]  # between images that there is but one of; any would do
    return Operand(
        operand.passed, (*size[:2], *_three(size[2:], 1)), (*stride[:2], *_three(stride[2:], outer))
    )


def contiguous_strides(size: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose last axis is the fastest."""
    return tuple(
        math.prod(max(extent, 1) for extent in size[axis + 1 :]) for axis in range(len(size))
    )
