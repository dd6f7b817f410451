"""Where in memory the elements of a row lie that a kernel's tile holds.

A row of an odd length begins anywhere, and the compiler then moves its elements one by one. What is
here finds the index that runs along the row, its masks, and the accesses that begin at the same
place of each row, so that edits can let the index begin at a multiple of 16 elements instead.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kernel_smith.proposers.mutator.triton.text import calls
from kernel_smith.proposers.mutator.triton.values import access, called

ALIGNED = 16  # elements: 16 bytes at least, whatever their type
WIDE_ENOUGH = 4  # rows of a multiple of so many elements are moved in vectors as they are
SHORTEST = 128


@dataclass(frozen=True, eq=False)
class Index:
    """`name = something + spot`, where `spot` is `tl.arange(0, BLOCK)` with or without axes."""

    statement: ast.Assign
    name: str
    spot: ast.expr

    @property
    def is_flat(self) -> bool:
        return isinstance(self.spot, ast.Call)


def aligned_by(is_flat: bool) -> str:
    """Tell how many elements are aligned, by axis."""
    return str(ALIGNED) if is_flat else f"[1, {ALIGNED}]"


def range_over(kernel: ast.FunctionDef, block: str, spot: ast.expr) -> ast.expr | None:
    """Return the range over a block that an expression is, or that its name stands for."""
    if isinstance(spot, ast.Name):
        values = [
            each.value
            for each in kernel.body
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == spot.id
        ]
        once = names_stored(kernel).count(spot.id) == len(values) == 1
        return range_over(kernel, block, values[0]) if once else None
    call = _range(spot)
    return spot if call is not None and _is_over(block, call) else None


def index_over(block: str, statements: Iterable[ast.stmt]) -> Index | None:
    """Return the only one that has a range over the block."""
    ranges = [
        node for each in statements for node in calls(each, "arange") if _is_over(block, node)
    ]
    found = [
        index for each in statements for index in _indices(each) if _range(index.spot) in ranges
    ]
    return found[0] if len(found) == len(ranges) == 1 else None


def _is_over(block: str, call: ast.Call) -> bool:
    return [ast.unparse(argument) for argument in call.args][1:] == [block]


def _indices(statement: ast.stmt) -> Iterator[Index]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            added = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)
            spot = value.right if added and isinstance(value, ast.BinOp) else value
            if _range(spot) is not None:
                yield Index(statement, name, spot)


def _range(spot: ast.expr) -> ast.Call | None:
    """`tl.arange(0, BLOCK)`, which may have an axis before its own."""
    match spot:
        case ast.Subscript(value=ast.Call() as call, slice=axes):
            return call if ast.unparse(axes).strip("()") == "None, :" else None
        case ast.Call(args=[ast.Constant(value=0), _]):
            return spot if called(spot) == "arange" else None
    return None


def names_of(index: str, statements: Iterable[ast.stmt], zeros: Collection[str] = ()) -> set[str]:
    """Return the index's name, and those that are given to it later. `zeros`: names of nothing."""
    found = {index}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)):
                found |= {name} if other in found else set()
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.Name(id=zero), op=ast.Add(), right=ast.Name(id=other)),
            ):
                found |= {name} if other in found and zero in zeros else set()
    return found


def bounds(node: ast.AST, index: Collection[str], size: Collection[str]) -> list[ast.Compare]:
    """Return the comparisons `index < size` below a node."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Compare)
        and isinstance(part.left, ast.Name)
        and part.left.id in index
        and [type(op) for op in part.ops] == [ast.Lt]
        and ast.unparse(part.comparators[0]) in size
    ]


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store at `pointer + (start + index)`."""

    place: ast.expr
    pointer: str
    start: str
    offsets: str

    def told(self, hint: str) -> str:
        """Return the place, with a promise of what is aligned."""
        return f"{self.pointer} + tl.max_contiguous(tl.multiple_of({self.offsets}, {hint}), {hint})"


def accesses(node: ast.AST, index: Collection[str]) -> Iterator[Access]:
    """Yield those below a node whose index runs along the row by steps of one."""
    for call in [*calls(node, "load"), *calls(node, "store")]:
        place = access(call)[0]
        terms = list(_terms(place)) if place is not None else []
        own = [term for term in terms if isinstance(term, ast.Name) and term.id in index]
        rest = [term for term in terms[1:] if term not in own]
        read = {n.id for term in rest for n in ast.walk(term) if isinstance(n, ast.Name)}
        if (
            place is None
            or len(own) != 1
            or read & set(index)
            or not isinstance(terms[0], ast.Name)
        ):
            continue
        start = " + ".join(_operand(term) for term in rest) or "0"
        offsets = " + ".join(_operand(term) for term in terms[1:])
        yield Access(place, terms[0].id, start, offsets)


def usual_start(found: Iterable[Access]) -> str | None:
    """Tell where most accesses begin, of those that begin elsewhere in each row."""
    starts = Counter(each.start for each in found if each.start != "0")
    return starts.most_common(1)[0][0] if starts else None


def limits(node: ast.AST, index: Collection[str]) -> set[str]:
    """Return all that an index is said to be less than."""
    return {
        ast.unparse(part.comparators[0])
        for part in ast.walk(node)
        if isinstance(part, ast.Compare)
        and isinstance(part.left, ast.Name)
        and part.left.id in index
        and [type(op) for op in part.ops] == [ast.Lt]
    }


def zeros_of(kernel: ast.FunctionDef) -> set[str]:
    """Names that are nothing but 0."""
    stored = Counter(names_stored(kernel))
    found = set()
    for statement in kernel.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=0)):
                found |= {name} if stored[name] == 1 else set()
    return found


def names_stored(node: ast.AST) -> list[str]:
    parts = ast.walk(node)
    return [n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def names_read(node: ast.AST) -> set[str]:
    parts = ast.walk(node)
    return {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def as_number(kernel: ast.FunctionDef, statement: ast.stmt, words: str) -> str | None:
    """Return what an expression is for a tile of one row: a number, in words that are known
    before a statement of the kernel's. None if it needs more than that, such as what is loaded."""
    at = kernel.body.index(statement)
    early = {name for each in kernel.body[:at] for name in names_stored(each)}
    parameters = {argument.arg for argument in kernel.args.args} | {"tl"}
    often = Counter(names_stored(kernel))
    values: dict[str, ast.expr] = {}
    for each in kernel.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if often[name] == 1:
                values[name] = value

    class Number(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id in parameters:
                return node
            spelled = self.visit(ast.parse(ast.unparse(values[node.id]), mode="eval").body)
            plain = ast.unparse(spelled) == ast.unparse(values[node.id])
            return node if plain and node.id in early else spelled

        def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
            return self.visit_Call(node.value) if isinstance(node.value, ast.Call) else node

        def visit_Call(self, node: ast.Call) -> ast.expr:
            name = called(node)
            if name == "arange":
                return ast.Constant(0)  # of a single row
            if name not in ("program_id", "to"):
                raise KeyError(name)
            self.generic_visit(node)
            return node

        def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
            self.generic_visit(node)
            nothing = isinstance(node.right, ast.Constant) and node.right.value == 0
            return node.left if nothing and isinstance(node.op, ast.Add) else node

    try:
        return ast.unparse(Number().visit(ast.parse(words, mode="eval").body))
    except KeyError:
        return None


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _operand(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call) else f"({text})"
