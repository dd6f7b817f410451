"""What one iteration of a kernel does: what it reads, writes and adds up, or that it is not known.

`body_of` reads the code that a thread runs for one element. It gives None for whatever might make
elements depend on one another or on the thread that has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import function_name
from kernel_smith.proposers.mutator.cpp.names import Declared, addressed, names_of, targets
from kernel_smith.proposers.mutator.cpp.text import inside, walk
from kernel_smith.proposers.mutator.gpu.kernels import (
    Kernel,
    block_wide,
    collective,
    is_shared,
    macros,
    runs_on_device,
    varying_functions,
)
from kernel_smith.proposers.mutator.gpu.text import GpuText

_LEAVES = {"return_statement", "break_statement", "continue_statement", "goto_statement"}
_OPAQUE = _LEAVES | {"lambda_expression", "try_statement", "preproc_call", "preproc_if"}
_CHOICES = {
    "fmaxf": "max",
    "fmax": "max",
    "max": "max",
    "fminf": "min",
    "fmin": "min",
    "min": "min",
}
_STREAMING_STORES = {"__stcs", "__stcg", "__stwt"}
_NUMBERS = {"float", "double", "int", "int32_t", "int64_t", "unsigned", "uint32_t", "long long"}


@dataclass(frozen=True, eq=False)
class Write:
    """`pointer[index] = ...`, or `store(pointer + index, ...)`: the place is the node `place`."""

    pointer: str
    index: str
    place: Node
    statement: Node
    by_store: bool


@dataclass(frozen=True, eq=False)
class Body:
    """The code for one element: `sums` maps accumulators to `+`, `*`, `max` or `min`."""

    kernel: Kernel
    nodes: tuple[Node, ...]
    writes: tuple[Write, ...]
    sums: dict[str, str]

    def identifiers(self) -> list[Node]:
        return [n for node in self.nodes for n in walk(node) if n.type == "identifier"]

    def mentions(self, *words: str) -> bool:
        return any(self.kernel.text.of(node) in words for node in self.identifiers())

    def depends_on_thread(self, over_grid: bool) -> bool:
        """Tell whether it asks which thread it runs in."""
        asked = {"threadIdx", "blockIdx"} if over_grid else {"threadIdx"}
        return self.mentions(*asked, *varying_functions(self.kernel.text))

    def outer_names(self) -> list[tuple[Node, Declared]]:
        """Return the uses of what the kernel declares outside of the body."""
        found = []
        for node in self.identifiers():
            declared = self.kernel.names.lookup(self.kernel.text.of(node), node)
            if declared is not None and not any(inside(declared.node, own) for own in self.nodes):
                found.append((node, declared))
        return found


def body_of(kernel: Kernel, nodes: list[Node]) -> Body | None:
    text = kernel.text
    if any(n.type in _OPAQUE or n.is_error for node in nodes for n in walk(node)):
        return None
    if any(collective(text, node) for node in nodes) or any(list(addressed(n)) for n in nodes):
        return None
    writes: list[Write] = []
    sums: dict[str, str] = {}
    for node in nodes:
        if not _note_targets(kernel, node, nodes, writes, sums) or not _note_calls(
            kernel, node, writes
        ):
            return None
    body = Body(kernel, tuple(nodes), tuple(writes), sums)
    return body if _sums_are_only_added_to(body) else None


def root(kernel: Kernel, pointer: str, at: Node) -> Declared | None:
    """Return the parameter behind a pointer that never moves."""
    for _ in range(8):
        declared = kernel.names.lookup(pointer, at)
        if declared is None or declared.kind != "pointer" or pointer in kernel.names.assigned:
            return None
        if declared.node.type == "parameter_declaration":
            return declared
        if declared.value is None:
            return None
        words = [kernel.text.of(n) for n in walk(declared.value) if n.type == "identifier"]
        pointers = {w for w in words if _is_pointer(kernel, w, declared.node)}
        if len(pointers) != 1:
            return None
        pointer, at = pointers.pop(), declared.node
    return None


@lru_cache(maxsize=64)
def stores(text: GpuText) -> set[str]:
    """Functions that do nothing but `*place = ...` with their first argument."""
    functions = [(function_name(text, f), f) for f in text.functions() if runs_on_device(text, f)]
    plain = {name for name, function in functions if stored_place(text, function) is not None}
    return plain - {name for name, f in functions if stored_place(text, f) is None}


def stored_place(text: GpuText, function: Node) -> Node | None:
    """Return the assignment of a function that is nothing else."""
    body = function.child_by_field_name("body")
    statements = [c for c in body.named_children if c.type != "comment"] if body else []
    own = names_of(text, function).declared_in(function)
    if len(statements) != 1 or len(own) != 2 or not statements[0].named_children:
        return None
    assignment = statements[0].named_children[0]
    left = assignment.child_by_field_name("left")
    fits = assignment.type == "assignment_expression" and left is not None
    return assignment if fits and left and text.of(left) == f"*{own[0].name}" else None


def same_for_all_threads(kernel: Kernel, word: str, at: Node, over_grid: bool) -> bool:
    """Tell whether a name has one value in all threads of a block, or even of the grid.

    What a function returns in which all threads of a block meet is taken to be the same for them.
    """
    declared = kernel.names.lookup(word, at)
    if declared is None or declared.node.type == "parameter_declaration":
        varying = {"threadIdx", "blockIdx"} if over_grid else {"threadIdx"}
        varying |= varying_functions(kernel.text) | macros(kernel.text)
        return word not in varying | kernel.names.assigned
    if is_shared(kernel.text, declared.node):
        return not over_grid
    changes = [
        node
        for node in walk(kernel.body)
        if node.type in ("assignment_expression", "update_expression")
        and any(kernel.text.of(t) == word for t in list(targets(node))[:1])
    ]
    earlier = [node for node in changes if node.end_byte <= at.start_byte]
    if len(earlier) < len(changes) and _in_loop(at):
        return False
    if word in {kernel.text.of(n) for n in addressed(kernel.body)}:
        return False
    last = max(earlier, key=lambda node: node.start_byte, default=None)
    if last is None:
        return declared.value is not None and _uniform(kernel, declared.value, over_grid)
    block = last.parent.parent if last.parent is not None else None
    value, sign = last.child_by_field_name("right"), last.child_by_field_name("operator")
    if block is None or value is None or sign is None or kernel.text.of(sign) != "=":
        return False
    return (
        block.type == "compound_statement"
        and inside(at, block)
        and _uniform(kernel, value, over_grid)
    )


def _uniform(kernel: Kernel, value: Node, over_grid: bool) -> bool:
    pending = [value]
    while pending:
        node = pending.pop()
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            meets = function is not None and kernel.text.of(function) in block_wide(kernel.text)
            if meets and not over_grid:
                continue
            if function is not None and collective(kernel.text, function):
                return False
        word = kernel.text.of(node) if node.type == "identifier" else ""
        if word and not same_for_all_threads(kernel, word, node, over_grid):
            return False
        pending.extend(node.children)
    return True


def _in_loop(node: Node) -> bool:
    above = node.parent
    while above is not None and above.type != "function_definition":
        if above.type in ("for_statement", "while_statement", "do_statement"):
            return True
        above = above.parent
    return False


def _is_pointer(kernel: Kernel, word: str, at: Node) -> bool:
    declared = kernel.names.lookup(word, at)
    return declared is not None and declared.kind != "plain"


def _note_targets(
    kernel: Kernel, node: Node, nodes: list[Node], writes: list[Write], sums: dict[str, str]
) -> bool:
    text = kernel.text
    for target in targets(node):
        change = target.parent
        assert change is not None
        if target.type == "subscript_expression":
            write = _subscript_write(kernel, target, change)
            if write is None:
                return False
            writes.append(write)
        elif target.type == "identifier":
            declared = kernel.names.lookup(text.of(target), target)
            if declared is None or declared.kind != "plain":
                return False
            if any(inside(declared.node, own) for own in nodes):
                continue
            operator = _accumulation(text, change, text.of(target))
            known = sums.setdefault(text.of(target), operator or "")
            if operator is None or known != operator or declared.type not in _NUMBERS:
                return False
        else:
            return False
    return True


def _subscript_write(kernel: Kernel, target: Node, change: Node) -> Write | None:
    text = kernel.text
    base, operator = target.child_by_field_name("argument"), change.child_by_field_name("operator")
    statement = change.parent
    index = subscript_index(text, target)
    if base is None or operator is None or statement is None or index is None:
        return None
    if text.of(operator) != "=" or statement.type != "expression_statement":
        return None
    return Write(text.of(base), index, target, statement, by_store=False)


def subscript_index(text: GpuText, node: Node) -> str | None:
    indices = node.child_by_field_name("indices")
    inner = indices.named_children if indices is not None else []
    return text.of(inner[0]) if len(inner) == 1 else None


def _note_calls(kernel: Kernel, node: Node, writes: list[Write]) -> bool:
    """Notes stores; False if a function that is called may write anything else."""
    text = kernel.text
    own = {function_name(text, f) for f in text.functions()}
    for call in walk(node):
        if call.type != "call_expression":
            continue
        function, arguments = (call.child_by_field_name(n) for n in ("function", "arguments"))
        if function is None or arguments is None or call.parent is None:
            return False
        name = text.of(function)
        if name in stores(text) or name in _STREAMING_STORES:
            place = arguments.named_children[0]
            pointer, _, index = text.of(place).partition(" + ")
            if call.parent.type != "expression_statement" or not pointer.isidentifier():
                return False
            # Streaming stores are for global memory, so their place must stay as it is.
            index = "" if name in _STREAMING_STORES else index
            writes.append(Write(pointer, index, place, call.parent, by_store=True))
        elif name.partition("<")[0] in own and _may_write(text, name.partition("<")[0]):
            return False
    return True


def _may_write(text: GpuText, name: str) -> bool:
    for function in text.functions():
        if function_name(text, function) == name:
            head = text.of(function).partition("{")[0]
            parameters = head.partition(name)[2].split(",")
            if any("&" in p or ("*" in p and "const" not in p) for p in parameters):
                return True
    return False


def _accumulation(text: GpuText, change: Node, name: str) -> str | None:
    if change.type == "update_expression":
        alone = change.parent is not None and change.parent.type == "expression_statement"
        return "+" if alone else None
    right, operator = (change.child_by_field_name(n) for n in ("right", "operator"))
    if right is None or operator is None or change.parent is None:
        return None
    if change.parent.type != "expression_statement":
        return None
    sign = text.of(operator)
    if sign != "=":
        return {"+=": "+", "-=": "+", "*=": "*"}.get(sign)
    called = right.child_by_field_name("function")
    arguments = right.child_by_field_name("arguments")
    if right.type != "call_expression" or called is None or arguments is None:
        return None
    given = [text.of(argument) for argument in arguments.named_children]
    return _CHOICES.get(text.of(called)) if len(given) == 2 and given.count(name) == 1 else None


def _sums_are_only_added_to(body: Body) -> bool:
    """An accumulator may only appear where it is added to."""
    text = body.kernel.text
    uses = [text.of(node) for node in body.identifiers()]
    for name, operator in body.sums.items():
        changes = [t for n in body.nodes for t in targets(n) if text.of(t) == name]
        expected = 2 if operator in ("max", "min") else 1
        if uses.count(name) != expected * len(changes):
            return False
    return True
