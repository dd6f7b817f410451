"""Rewrites the statements of a generated module's `call` with nothing but torch and the kernels."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kernel_smith.proposers.seed.library_calls import contiguous_strides
from kernel_smith.proposers.seed.own_kernels import OwnKernels
from kernel_smith.proposers.seed.refusal import refused

Launch = Callable[[str, list[ast.expr]], ast.expr]
"""Takes a kernel's name and its arguments; gives the expression that launches it."""

_EXTERN = {
    **{name: name for name in ("mm", "addmm", "bmm", "baddbmm", "convolution", "_int_mm")},
    "bias_addmm": "addmm",
    "_scaled_mm": "_scaled_mm",
}
_DROPPED_CALLS = {"assert_alignment", "args.clear", "torch.cuda.set_device"}
_DROPPED_VALUES = {"get_raw_stream", "copy_if_misaligned"}
_CONSTANTS = {"inf", "nan"}


@dataclass
class Body:
    """A function's statements, and the library calls among them."""

    statements: list[ast.stmt]
    library_calls: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in self.statements)


def rewrite(
    body: list[ast.stmt],
    names: dict[str, str],
    kernels: set[str],
    launch: Launch,
    own: OwnKernels | None = None,
) -> Body:
    """Return the same work in plain torch; `names` gives the graph's inputs their readable names.

    With `own`, kernels of ours take the place of the library calls that they can replace.
    """
    device = f"{next(iter(names.values()))}.device" if names else "'cuda'"
    rewriter = _Rewriter(names, kernels, launch, device, own)
    statements = [
        new for statement in _flat(body, set(names)) for new in rewriter.rewritten(statement)
    ]
    made = own.texts if own else ()
    _check_names(statements, {*names.values(), *kernels, *made, "kernels", "torch", "triton"})
    return Body(statements, list(dict.fromkeys(rewriter.library_calls)))


def _flat(body: list[ast.stmt], inputs: set[str]) -> Iterator[ast.stmt]:
    """Without device guards, streams and assertions on the inputs."""
    for statement in body:
        match statement:
            case ast.With():
                yield from _flat(statement.body, inputs)
            case ast.Expr(value=ast.Call(func=function)) if _name(function) in _DROPPED_CALLS:
                continue
            case ast.Expr(value=ast.Call(func=ast.Name(id="assert_size_stride"), args=parts)):
                yield from _stride_assertion(parts, inputs)
            case ast.Assign(value=ast.Call(func=function)) if _name(function) in _DROPPED_VALUES:
                continue
            case ast.Delete(targets=[ast.Name(id=name)]) if name in inputs:
                continue
            case _:
                yield statement


def _stride_assertion(parts: list[ast.expr], inputs: set[str]) -> Iterator[ast.stmt]:
    """What the library returns must be laid out as the kernels after it expect."""
    buffer = ast.unparse(parts[0])
    if buffer in inputs:
        return
    sizes, strides = ast.literal_eval(parts[1]), ast.literal_eval(parts[2])
    checks = [
        f"{buffer}.stride({axis}) == {stride}"
        for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True))
        if size > 1
    ]
    if checks:
        yield ast.parse(f"assert {' and '.join(checks)}").body[0]


class _Rewriter(ast.NodeTransformer):
    def __init__(
        self,
        names: dict[str, str],
        kernels: set[str],
        launch: Launch,
        device: str,
        own: OwnKernels | None,
    ) -> None:
        self._names = names
        self._kernels = kernels
        self._launch = launch
        self._device = device
        self._own = own
        self.library_calls: list[str] = []

    def rewritten(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return what takes a statement's place."""
        replaced = self._own.replace(statement, self.visit) if self._own else None
        return [self.visit(statement)] if replaced is None else replaced

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in _CONSTANTS:
            return _expression(f"float({node.id!r})")
        if node.id == "aten":
            return _expression("torch.ops.aten")
        return ast.Name(self._names.get(node.id, node.id), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = _name(node.func)
        owner, _, method = name.rpartition(".")
        if name in self._kernels or (owner in self._kernels and method == "run"):
            kernel = owner or name
            return self._launch(kernel, [self.visit(argument) for argument in node.args])
        if name.startswith("empty_strided_"):
            return self._allocation(node, name.removeprefix("empty_strided_"))
        if name == "device":
            return _expression(self._device)
        if name == "reinterpret_tensor":
            return self._view(node)
        if owner == "extern_kernels":
            return self._extern(node, method)
        self.generic_visit(node)
        spelled = _name(node.func)
        if spelled.startswith("torch.ops."):
            self._note_operator(spelled)
        return node

    def _allocation(self, node: ast.Call, device: str) -> ast.expr:
        """Memory where the first input is; the CPU is the default."""
        size, stride = (ast.literal_eval(part) for part in node.args[:2])
        dtype = ast.unparse(node.args[2])
        where = "" if device == "cpu" else f", device={self._device}"
        if stride == contiguous_strides(size):
            # A tuple would make torch try another overload first, for most of a microsecond.
            extents = ", ".join(map(str, size)) or "()"
            return _expression(f"torch.empty({extents}, dtype={dtype}{where})")
        return _expression(f"torch.empty_strided({size}, {stride}, dtype={dtype}{where})")

    def _view(self, node: ast.Call) -> ast.expr:
        """`reinterpret_tensor` counts its offset from the tensor, `as_strided` from its memory."""
        tensor, size, stride, offset = (ast.unparse(self.visit(part)) for part in node.args)
        is_buffer = isinstance(node.args[0], ast.Name) and node.args[0].id.startswith("buf")
        if offset == "0":
            return _expression(f"torch.as_strided({tensor}, {size}, {stride})")
        start = offset if is_buffer else f"{tensor}.storage_offset() + {offset}"
        return _expression(f"torch.as_strided({tensor}, {size}, {stride}, {start})")

    def _extern(self, node: ast.Call, method: str) -> ast.expr:
        if method not in _EXTERN:
            raise refused(f"the compiler calls `extern_kernels.{method}`, which seeds do not know")
        self.library_calls.append(_EXTERN[method])
        node.func = _expression(f"torch.{_EXTERN[method]}")
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def _note_operator(self, name: str) -> None:
        if not name.startswith(("torch.ops.aten.", "torch.ops.mkldnn.")):
            raise refused(f"the compiler calls `{name}`, which candidates have no use for")
        self.library_calls.append(name.removeprefix("torch.ops.").removesuffix(".default"))


def _check_names(statements: list[ast.stmt], known: set[str]) -> None:
    """Every name must be made here: a seed has no other module behind it."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    made = known | {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in names:
        if node.id not in made and not hasattr(builtins, node.id):
            raise refused(f"the compiler's output uses `{node.id}`, which seeds do not know")


def _name(node: ast.expr) -> str:
    """Return a dotted name, or nothing for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute):
            owner = _name(value)
            return f"{owner}.{attribute}" if owner else ""
    return ""


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
