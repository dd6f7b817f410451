"""Which operations a reference uses, and how much two of them have in common."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator

from kernel_smith.programs.parsing import parse_python

# What references of all kinds do to get at their numbers.
_EVERYWHERE = re.compile(
    r"torch|nn|Tensor|Module|Parameter|super|__init__|getattr|append|arange|shape|size|"
    r"dtype|device|numel|ndim|dim|float|double|half|to|type|contiguous|view|reshape|"
    r"flatten|unsqueeze|squeeze|expand|transpose|permute|empty|zeros|ones|randn|rand|int|"
    r"range|len|isinstance|tuple|list|functional|F|self|float32|float16|bfloat16|int32|"
    r"int64|long|item|weight|bias|detach|clone|register_buffer|to_copy|ones_like|"
    r"zeros_like|empty_like|full|stack|cat|randint|chunk|promote_types|get_inputs|"
    r"get_init_inputs"
)
_SIGNS: dict[type[ast.AST], str] = {ast.MatMult: "matmul", ast.Div: "div"}
_SAME = {
    "addmm": "linear",
    "mm": "matmul",
    "bmm": "matmul",
    "einsum": "matmul",
    "convolution": "conv2d",
    "logsumexp": "log_sum_exp",
    "cumsum": "cumulative_sum",
    "layernorm": "layer_norm",
    "rmsnorm": "rms_norm",
}
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])")


def operations(source: str) -> Counter[str]:
    """Return the parts of the names that a reference calls to compute its results: `layer` and
    `norm`; nothing where it is no Python."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Counter()
    parts = [node for node in tree.body if not _makes_inputs(node)]
    own = {node.name for node in parts if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return Counter(word for part in parts for word in _words(part, own))


def likeness(one: Counter[str], other: Counter[str]) -> float:
    """From 0 for nothing in common to 1 for the same operations as often."""
    return (one & other).total() / max(1, (one | other).total())


def _makes_inputs(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("get_")


def _words(part: ast.stmt, own: Collection[str]) -> Iterator[str]:
    """Yield the names of what is called, in parts, and the signs of what is computed. `own`:
    functions of the reference itself, whose names say nothing."""
    for node in ast.walk(part):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
                if not _EVERYWHERE.fullmatch(name) and name not in own:
                    whole = _SAME.get(name, name)
                    yield from (word.lower() for word in _PART.findall(whole))
            case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _SIGNS:
                yield _SIGNS[type(op)]
