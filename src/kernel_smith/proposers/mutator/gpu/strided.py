"""Loops in which the threads of a block, or of the whole grid, take turns at elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import Loop, places
from kernel_smith.proposers.mutator.cpp.names import Declared
from kernel_smith.proposers.mutator.cpp.text import inside, walk
from kernel_smith.proposers.mutator.gpu.bodies import Body, body_of, root, same_for_all_threads
from kernel_smith.proposers.mutator.gpu.kernels import Kernel, block_wide, kernels
from kernel_smith.proposers.mutator.gpu.polynomial import Polynomial, number
from kernel_smith.proposers.mutator.gpu.text import GpuText

INTEGERS = {"int", "int32_t", "int64_t", "long", "long long", "unsigned", "uint32_t", "size_t"}


@dataclass(frozen=True, eq=False)
class StridedLoop:
    """`for (i = own number; i < end; i += number of threads)`."""

    place: str
    kernel: Kernel
    loop: Loop
    body: Body
    over_grid: bool

    def can_be_shared_out_anew(self) -> bool:
        """Tell whether it does not matter which thread has which element."""
        kernel, loop = self.kernel, self.loop
        if loop.node.parent != kernel.body or self.body.depends_on_thread(self.over_grid):
            return False
        if not all(self._is_added_up_by_all(name) for name in self.body.sums):
            return False
        if not all(self._is_plain_memory(declared) for _, declared in self.body.outer_names()):
            return False
        early = [n for n in walk(kernel.body) if n.type == "return_statement"]
        if any(node.start_byte < loop.node.start_byte for node in early):
            return False
        words = {declared.name for _, declared in self.body.outer_names()}
        words -= {loop.variable, *self.body.sums}
        words |= {kernel.text.of(n) for n in walk(end_of(loop)) if n.type == "identifier"}
        return all(same_for_all_threads(kernel, w, loop.node, self.over_grid) for w in words)

    def _is_added_up_by_all(self, name: str) -> bool:
        """Tell whether a thread's sum only goes into a sum over the block."""
        kernel, text = self.kernel, self.kernel.text
        for node in walk(kernel.body):
            if node.start_byte < self.loop.node.end_byte or text.of(node) != name:
                continue
            if node.type == "identifier" and not _is_overwritten(kernel, node):
                if not _is_given_to_all(kernel, node):
                    return False
                if _overwrites(kernel, node, name):
                    return True
        return True

    def _is_plain_memory(self, declared: Declared) -> bool:
        """Arrays are shared, or a thread's own: somebody may count on who wrote them."""
        if declared.kind == "plain":
            return True
        return root(self.kernel, declared.name, self.loop.node) is not None


def strided_loops(text: GpuText) -> Iterator[StridedLoop]:
    named = list(places(text))
    for kernel in kernels(text):
        for place, loop in named:
            if not inside(loop.node, kernel.body) or loop.type not in INTEGERS:
                continue
            start = kernel.value(loop.start, loop.node)
            step = kernel.value(loop.step, loop.node)
            body = body_of(kernel, loop.statements)
            if body is None or loop.variable in body.sums:
                continue
            if start == {("threadIdx_x",): 1} and step == number(kernel.threads):
                yield StridedLoop(place, kernel, loop, body, over_grid=False)
            elif start == own_number(kernel) and step == {("gridDim_x",): kernel.threads}:
                yield StridedLoop(place, kernel, loop, body, over_grid=True)


def _is_overwritten(kernel: Kernel, node: Node) -> bool:
    """Tell whether a name is the left side of a plain assignment that certainly happens."""
    change = node.parent
    if change is None or change.type != "assignment_expression" or change.parent is None:
        return False
    sign = change.child_by_field_name("operator")
    first = change.child_by_field_name("left") == node and change.parent.parent == kernel.body
    return first and sign is not None and kernel.text.of(sign) == "="


def _is_given_to_all(kernel: Kernel, node: Node) -> bool:
    """Tell whether a name is an argument of a function in which all threads of the block meet."""
    call = node.parent.parent if node.parent is not None else None
    if call is None or call.type != "call_expression":
        return False
    function = call.child_by_field_name("function")
    return function is not None and kernel.text.of(function) in block_wide(kernel.text)


def _overwrites(kernel: Kernel, node: Node, name: str) -> bool:
    """Tell whether the statement around a use gives the name a new value."""
    above: Node | None = node
    while above is not None and above.parent != kernel.body:
        above = above.parent
    change = above.named_children[0] if above is not None and above.named_children else None
    left = change.child_by_field_name("left") if change is not None else None
    return left is not None and kernel.text.of(left) == name and _is_overwritten(kernel, left)


def own_number(kernel: Kernel) -> Polynomial:
    """Return the number of a thread in the grid."""
    return {("blockIdx_x",): kernel.threads, ("threadIdx_x",): 1}


def end_of(loop: Loop) -> Node:
    condition = loop.node.child_by_field_name("condition")
    right = condition.child_by_field_name("right") if condition is not None else None
    assert right is not None
    return right
