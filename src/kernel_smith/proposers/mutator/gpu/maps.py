"""Kernels in which each thread has one element: `if (i < n) ...`, with a grid that covers all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import identifiers
from kernel_smith.proposers.mutator.cpp.names import names_of
from kernel_smith.proposers.mutator.cpp.text import walk
from kernel_smith.proposers.mutator.edit import Splice
from kernel_smith.proposers.mutator.gpu.bodies import Body, body_of, same_for_all_threads
from kernel_smith.proposers.mutator.gpu.kernels import (
    Kernel,
    Launch,
    collective,
    kernels,
    local_value,
)
from kernel_smith.proposers.mutator.gpu.polynomial import (
    Polynomial,
    added,
    multiplied,
    number,
)
from kernel_smith.proposers.mutator.gpu.strided import INTEGERS, own_number
from kernel_smith.proposers.mutator.gpu.text import GpuText


@dataclass(frozen=True, eq=False)
class ElementMap:
    """`const type variable = index; if (variable < end) body`, as the end of a kernel."""

    kernel: Kernel
    body: Body
    type: str
    variable: str
    index: str
    end: str
    declaration: Node

    @property
    def stride(self) -> str:
        """How far the elements of all threads together reach."""
        return f"static_cast<int64_t>(gridDim.x) * {self.kernel.width}"

    def replaced_by(self, code: str) -> Splice:
        return Splice(self.declaration.start_byte, self.kernel.body.end_byte - 1, f"{code}\n")

    def with_grids(self, new: str) -> list[Splice]:
        """Launches with another grid; `{grid}` in the text stands for the one so far."""
        grids = [launch.grid for launch in self.kernel.launches]
        return [
            Splice(g.start_byte, g.end_byte, new.format(grid=self.kernel.text.of(g))) for g in grids
        ]


def element_maps(text: GpuText) -> Iterator[ElementMap]:
    for kernel in kernels(text):
        found = _read(kernel)
        if found is not None and all(_covers(found, launch) for launch in kernel.launches):
            yield found


def _read(kernel: Kernel) -> ElementMap | None:
    text, statements = kernel.text, kernel.statements
    tests = [k for k, statement in enumerate(statements) if statement.type == "if_statement"]
    if not tests or tests[0] == 0:
        return None
    declaration, test, *rest = statements[tests[0] - 1 :]
    if test.child_by_field_name("alternative") is not None:
        return None
    declared = kernel.names.declared_in(declaration)
    if declaration.type != "declaration" or len(declared) != 1 or declared[0].value is None:
        return None
    i = declared[0]
    assert i.value is not None
    nodes, end = _guarded(text, test, rest, i.name)
    body = body_of(kernel, nodes) if nodes else None
    if body is None or end is None or body.sums or i.type not in INTEGERS:
        return None
    before = statements[: tests[0]]
    if any(node.type != "declaration" or collective(text, node) for node in before):
        return None
    if identifiers(text.of(end)) & kernel.names.assigned:
        return None
    if kernel.value(i.name, test) != own_number(kernel) or not _is_free(body, i.name):
        return None
    return ElementMap(kernel, body, i.type, i.name, text.of(i.value), text.of(end), declaration)


def _guarded(
    text: GpuText, test: Node, rest: list[Node], name: str
) -> tuple[list[Node], Node | None]:
    """Return what runs only for elements that exist, and their number."""
    clause = test.child_by_field_name("condition")
    taken = test.child_by_field_name("consequence")
    condition = clause.child_by_field_name("value") if clause is not None else None
    if condition is None or taken is None or condition.type != "binary_expression":
        return [], None
    left, sign, right = (condition.child_by_field_name(n) for n in ("left", "operator", "right"))
    if left is None or sign is None or right is None or text.of(left) != name:
        return [], None
    own = taken.named_children if taken.type == "compound_statement" else [taken]
    own = [node for node in own if node.type != "comment"]
    if text.of(sign) == "<" and not rest:
        return own, right
    if text.of(sign) == ">=" and [node.type for node in own] == ["return_statement"]:
        return rest, right
    return [], None


def _is_free(body: Body, variable: str) -> bool:
    """Tell whether an element may be done by any thread."""
    kernel = body.kernel
    if body.depends_on_thread(over_grid=True) or body.mentions("gridDim", "blockDim"):
        return False
    if any(n.type == "return_statement" for own in body.nodes for n in walk(own)):
        return False
    outer = {declared.name for _, declared in body.outer_names()} - {variable}
    return all(same_for_all_threads(kernel, w, body.nodes[0], over_grid=True) for w in outer)


def _covers(found: ElementMap, launch: Launch) -> bool:
    """Tell whether the grid is one block for every so many elements, the last perhaps not full."""
    kernel, text = found.kernel, found.kernel.text
    grid: Node | None = launch.grid
    if grid is not None and grid.type == "identifier":
        declared = names_of(text, launch.function).lookup(text.of(grid), grid)
        fixed = declared is not None and declared.constant and declared.kind == "plain"
        grid = declared.value if declared is not None and fixed else None
    if grid is None or grid.type != "binary_expression":
        return False
    above, sign, below = (grid.child_by_field_name(n) for n in ("left", "operator", "right"))
    if above is None or sign is None or below is None or text.of(sign) != "/":
        return False

    def in_launcher(node: Node) -> Polynomial | None:
        return local_value(text, launch.function, text.of(node), launch.node, kernel.threads)

    elements = _elements(found, launch, [in_launcher(a) for a in launch.arguments])
    if elements is None or in_launcher(below) != number(kernel.threads):
        return False
    return in_launcher(above) == added(elements, number(kernel.threads - 1))


def _elements(
    found: ElementMap, launch: Launch, arguments: list[Polynomial | None]
) -> Polynomial | None:
    """Return the number of elements, in the launcher's names."""
    kernel = found.kernel
    bound = kernel.value(found.end, found.body.nodes[0])
    given = dict(zip([p.name for p in kernel.parameters], arguments, strict=False))
    if bound is None or len(kernel.parameters) != len(arguments):
        return None
    total: Polynomial = {}
    for product, factor in bound.items():
        term = number(factor)
        for word in product:
            value = given.get(word)
            if value is None:
                return None
            term = multiplied(term, value)
        total = added(total, term)
    return total
