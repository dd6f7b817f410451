"""Fuses what the compiler does to each element of a result into the kernel of ours that makes it.

The compiler's kernel would read the whole result and write it again, which may take as long as the
product. Ours does the same to its sums, while they are still in registers.
"""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_smith.proposers.seed.triton_clean import clean

_RESULT = 2  # which argument of our kernels is what they write
_TARGET = "in_out_ptr0"  # what the compiler calls memory that it changes
_PLACES = ("xoffset", "xindex", "xmask")  # what its kernels begin with
_ALONE = re.compile(r"\b(XBLOCK|xoffset|tl\.program_id|out_ptr\d|in_out_ptr\d)\b")
_MANY = 1 << 31  # elements, from which on their places need 64 bits

# What our kernels call the column of an element, which is its channel, and when there is one.
_COLUMNS = {
    "multiply": ("columns[None, :]", "columns[None, :] < COLUMNS"),
    "convolve": ("group * OUT + out", "out < OUT"),
}


@dataclass(frozen=True)
class _Launch:
    """A statement that launches a kernel."""

    statement: ast.stmt
    call: ast.Call
    kernel: str

    @property
    def numbers(self) -> dict[str, object]:
        keywords = self.call.keywords
        return {one.arg: ast.literal_eval(one.value) for one in keywords if one.arg}

    def change(self, kernel: str, more: Sequence[str]) -> None:
        """Have it launch another kernel, which takes more after the same."""
        assert isinstance(self.call.func, ast.Subscript)
        self.call.func.value = ast.Name(kernel, ast.Load())
        self.call.args += [ast.Name(one, ast.Load()) for one in more]


@dataclass(frozen=True)
class _Follower:
    """A launch that changes every element of a result where it lies, and what it is given beside,
    by the names of its parameters."""

    launch: _Launch
    given: dict[str, str]
    elements: int


def fuse_epilogues(statements: list[ast.stmt], texts: Mapping[str, str]) -> dict[str, str]:
    """Have our kernels do what follows them as far as it concerns single elements.

    Rewrites the statements in place, and returns the texts of the kernels that were made. `texts`
    are those of all kernels, the compiler's and ours.
    """
    made: dict[str, str] = {}
    for statement in list(statements):
        ours = _launch(statement)
        if ours is None or ours.kernel not in _COLUMNS:
            continue
        follower = _follower(statements, ours, texts)
        if follower is None:
            continue
        name = f"{ours.kernel}_{follower.launch.kernel.rpartition('_')[2]}"
        finish = _finish(f"{name}_finish", texts[follower.launch.kernel], follower, _column(ours))
        if finish is None:
            continue
        text = f"{finish}\n\n\n{_finishing(name, ours, texts[ours.kernel], follower)}"
        if made.setdefault(name, text) != text:
            continue  # it followed another result, whose columns lie elsewhere
        ours.change(name, tuple(follower.given.values()))
        statements.remove(follower.launch.statement)
    return made


def _launch(statement: ast.stmt) -> _Launch | None:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Subscript(value=ast.Name(name))) as call):
            return _Launch(statement, call, name)
    return None


def _follower(
    statements: Sequence[ast.stmt], ours: _Launch, texts: Mapping[str, str]
) -> _Follower | None:
    """Return the first launch that does anything with our result, if it changes that in place, and
    if all else that it needs is there before ours is launched."""
    place = statements.index(ours.statement)
    memory = _memory(statements)
    result = memory.get(ast.unparse(ours.call.args[_RESULT]), "")
    later = {name for one in statements[place:] for name in _made(one)}
    busy: set[str] = set()
    for statement in statements[place + 1 :]:
        if isinstance(statement, ast.Assert | ast.Delete) or _is_view(statement):
            continue
        used = {memory.get(name, name) for name in _names(statement)}
        if result not in used:
            busy |= used
            continue
        launch = _launch(statement)
        given = _arguments(launch, texts.get(launch.kernel, "")) if launch else {}
        elements = _elements(statements, result)
        if launch is None or str(elements) != given.pop("xnumel", ""):
            return None
        if memory.get(given.pop(_TARGET, "")) != result:
            return None
        others = {memory.get(name, name) for name in given.values()}
        if others & (busy | {result}) or later & set(given.values()) or elements is None:
            return None
        return _Follower(launch, given, elements)
    return None


def _memory(statements: Sequence[ast.stmt]) -> dict[str, str]:
    """Return whose memory a name stands for: views are looked through."""
    memory: dict[str, str] = {}
    for statement in statements:
        for name in _made(statement):
            of = next(iter(_names(statement) - {name}), "") if _is_view(statement) else name
            memory[name] = memory.get(of, of)
    return memory


def _is_view(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(value=ast.Name()):
            return True
        case ast.Assign(value=ast.Call(func=function, args=[ast.Name(), *_])):
            return ast.unparse(function) == "torch.as_strided"
    return False


def _made(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=[ast.Name(name)]):
            return {name}
    return set()


def _names(statement: ast.stmt) -> set[str]:
    found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return found - {"torch", "triton"}


def _arguments(launch: _Launch, text: str) -> dict[str, str]:
    """Return what a kernel is given, by the names of its parameters."""
    given = [ast.unparse(one) for one in launch.call.args]
    parameters = [one.arg for one in _function(text).args.args] if text else []
    return dict(zip(parameters, given, strict=False))


def _elements(statements: Sequence[ast.stmt], name: str) -> int | None:
    """Tell how many elements a tensor has, if its memory holds nothing else."""
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(made)], value=ast.Call(func=function) as call) if (
                made == name
            ):
                sizes: list[Any] = [ast.literal_eval(one) for one in call.args]
                if ast.unparse(function) == "torch.empty":
                    return math.prod(sizes) if all(isinstance(n, int) for n in sizes) else None
                if ast.unparse(function) == "torch.empty_strided":
                    return _dense(*sizes)
    return None


def _dense(size: tuple[int, ...], stride: tuple[int, ...]) -> int | None:
    count = math.prod(size)
    span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    return count if span == count else None


def _column(ours: _Launch) -> str:
    """Return how the compiler computes the column of an element from its place in memory; nothing
    where it could mean something else."""
    numbers: dict[str, Any] = ours.numbers
    if ours.kernel == "multiply":
        return f"xindex % {numbers['COLUMNS']}" if numbers["C_RIGHT"] == 1 else ""
    image, channel, *_, pixel = numbers["Y"]
    if channel == 1:
        return f"xindex % {pixel}"
    apart = f"xindex // {channel}"
    return apart if numbers["IMAGES"] == 1 else f"{apart} % {image // channel}"


def _finish(name: str, text: str, follower: _Follower, column: str) -> str | None:
    """Write what the compiler's kernel does to elements as a function of their values and places;
    None where it does something else."""
    body = [one for one in _function(text).body if not _made(one) & set(_PLACES)]
    linear = {f"{_TARGET} + {name}" for one in body for name in _made(one) if _is_index(one)}
    match body[-1]:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="store"), args=[place, value, *_])):
            reader = _Reader(column, ast.unparse(place))
            lines = [reader.visit(one) for one in body[:-1]]
            lines.append(ast.Return(reader.visit(value)))
        case _:
            return None
    written = "\n".join(ast.unparse(ast.fix_missing_locations(one)) for one in lines)
    if ast.unparse(place) not in linear or not reader.succeeds or _ALONE.search(written):
        return None
    parameters = ", ".join(("value", "xindex", "xmask", "column", "cmask", *follower.given))
    function = clean(f"def {name}({parameters}):\n{textwrap.indent(written, '    ')}")
    return f"@triton.jit\n{function}"


def _is_index(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "xindex"


class _Reader(ast.NodeTransformer):
    """Takes the value where the compiler's kernel loads it, and loads what else is there.

    What depends on nothing but the column is loaded once for a column.
    """

    def __init__(self, column: str, target: str) -> None:
        self._column, self._target = column, target
        self._of_columns: set[str] = set()
        self.succeeds = True

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if ast.unparse(node.value) == self._column:
            self._of_columns |= _made(node)
            node.value = ast.Name("column", ast.Load())
            return node
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match ast.unparse(node.func), node.args:
            case "tl.load", [place, *masks]:
                return self._load(node, place, masks[0] if masks else None)
            case "tl.broadcast_to", [value, shape] if ast.unparse(shape) == "[XBLOCK]":
                return self.visit(value)  # type: ignore[no-any-return]
        return self.generic_visit(node)

    def _load(self, node: ast.Call, place: ast.expr, mask: ast.expr | None) -> ast.AST:
        if ast.unparse(place) == self._target:
            return ast.Name("value", ast.Load())
        found = {one.id for one in ast.walk(place) if isinstance(one, ast.Name)}
        indices = {name for name in found if "_ptr" not in name}
        plain = mask is not None and ast.unparse(mask) in ("None", "xmask")
        if not indices:
            self.succeeds &= plain or mask is None
        elif mask is None:
            self.succeeds = False
        elif indices <= self._of_columns:
            self.succeeds &= plain  # else what masks it has a place for every element
            node.args[1] = ast.Name("cmask", ast.Load())
        elif plain:
            node.args[1] = ast.Name("xmask", ast.Load())
        else:
            node.args[1] = ast.BinOp(mask, ast.BitAnd(), ast.Name("xmask", ast.Load()))
        return node


def _finishing(name: str, ours: _Launch, text: str, follower: _Follower) -> str:
    """Write our kernel with a call of what finishes its sums before they are stored."""
    more = "".join(f"{one}, " for one in follower.given)
    text = re.sub(rf"def {ours.kernel}\(((?:\w+, ){{4}})", rf"def {name}(\1{more}", text)
    head, store, tail = text.rpartition("    tl.store(")
    place = "place" if follower.elements >= _MANY else "place.to(tl.int32)"
    given = ", ".join((place, "inside", *_COLUMNS[ours.kernel], *follower.given))
    return f"{head}    sums = {name}_finish(sums, {given})\n{store}{tail}"


def _function(text: str) -> ast.FunctionDef:
    function = ast.parse(text).body[-1]
    assert isinstance(function, ast.FunctionDef)
    return function
