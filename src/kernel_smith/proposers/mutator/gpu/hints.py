"""Edits that tell the compiler or the memory more: bounds, restrict, cached loads, unrolling."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.inner_loops import bare_innermost
from kernel_smith.proposers.mutator.cpp.loops import function_name
from kernel_smith.proposers.mutator.cpp.names import targets
from kernel_smith.proposers.mutator.cpp.text import inside, replaced, walk
from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.gpu.bodies import root, stored_place, stores, subscript_index
from kernel_smith.proposers.mutator.gpu.kernels import (
    Kernel,
    constant,
    is_kernel,
    kernels,
    runs_on_device,
)
from kernel_smith.proposers.mutator.gpu.text import GpuText, gpu_edit

_MOST_RESIDENT = 2048  # threads of a multiprocessor
_LARGEST_FULL_UNROLL = 32
# What the hardware loads at once, by the names that kernels use.
_LOADABLE = {"float", "double", "int", "int64_t", "__half", "half", "__nv_bfloat16", "T"}
_LOADABLE |= {"__maca_bfloat16", "scalar_t", "uint8_t", "int8_t", "unsigned", "uint32_t"}


@gpu_edit(
    "launch-bounds",
    "Tell the compiler how many threads a block of a kernel has, and how many blocks should fit.",
)
def launch_bounds(text: GpuText) -> Iterator[Site]:
    for kernel in kernels(text):
        kind = kernel.node.child_by_field_name("type")
        ahead = text.data[kernel.node.start_byte : kernel.body.start_byte].decode()
        if kind is None or kernel.width != kernel.block or "__launch_bounds__" in ahead:
            continue
        bounds = [kernel.block]
        # The second argument means something else in the other dialects.
        resident = _MOST_RESIDENT // kernel.threads if text.dialect == "cuda" else 0
        bounds += [f"{kernel.block}, {n}" for n in (resident // 2, resident) if n > 1]
        for bound in bounds:
            word = Splice(kind.start_byte, kind.start_byte, f"__launch_bounds__({bound})\n")
            yield Site(kernel.name, (word,), bound)


@gpu_edit("restrict-pointers", "Promise that the pointers of a kernel do not overlap.")
def restrict_pointers(text: GpuText) -> Iterator[Site]:
    for kernel in kernels(text):
        pointers = [p for p in kernel.parameters if p.kind == "pointer"]
        stars = [
            node.children[0]
            for p in pointers
            for node in walk(p.node)
            if node.type == "pointer_declarator" and "restrict" not in text.of(p.node)
        ]
        single = len(pointers) > 1 and all(text.of(p.node).count("*") == 1 for p in pointers)
        apart = all(_all_differ(kernel, text, launch.arguments) for launch in kernel.launches)
        if stars and single and apart:
            places = tuple(Splice(s.end_byte, s.end_byte, " __restrict__") for s in stars)
            yield Site(kernel.name, places)


@gpu_edit(
    "read-only-loads",
    "Load what a kernel never writes through the cache for read-only data.",
    ("cuda", "maca"),
)
def read_only_loads(text: GpuText) -> Iterator[Site]:
    for kernel in kernels(text):
        for name, found in _loads(kernel).items():
            if all(_promised(kernel, node) for node in found):
                splices = tuple(replaced(n, f"__ldg({_address(text, n)})") for n in found)
                yield Site(kernel.name, splices, name)


@gpu_edit(
    "streaming-access",
    "Mark what is loaded or stored once as the first to leave the cache.",
    ("cuda",),
)
def streaming_access(text: GpuText) -> Iterator[Site]:
    for kernel in kernels(text):
        for name, found in _loads(kernel).items():
            splices = tuple(replaced(n, f"__ldcs({_address(text, n)})") for n in found)
            yield Site(kernel.name, splices, f"loads of {name}")
        stored = _plain_stores(kernel)
        if stored:
            yield Site(kernel.name, tuple(_streamed(text, node) for node in stored), "stores")
    for name in sorted(stores(text)):
        if _only_for_global_memory(text, name):
            own = [f for f in text.functions() if function_name(text, f) == name]
            places = [stored_place(text, function) for function in own]
            yield Site(name, tuple(_streamed(text, p) for p in places if p is not None))


@gpu_edit("unroll-thread-loop", "Unroll an innermost loop of a kernel.")
def unroll_thread_loop(text: GpuText) -> Iterator[Site]:
    device = [f for f in text.functions() if runs_on_device(text, f)]
    for place, loop in bare_innermost(text):
        if not any(inside(loop.node, function) for function in device):
            continue
        for factor in (2, 4, 8):
            line = f"#pragma unroll {factor}"
            yield Site(place, text.before(loop.node, line), f"by {factor}")
        bound = constant(text, loop.end)
        if loop.start == "0" and bound is not None and bound <= _LARGEST_FULL_UNROLL:
            yield Site(place, text.before(loop.node, "#pragma unroll"), "whole")


def _all_differ(kernel: Kernel, text: GpuText, arguments: tuple[Node, ...]) -> bool:
    pairs = zip(kernel.parameters, arguments, strict=False)
    given = [text.of(argument) for p, argument in pairs if p.kind == "pointer"]
    return len(set(given)) == len(given)


def _loads(kernel: Kernel) -> dict[str, list[Node]]:
    """Subscripts that read what the kernel has a constant pointer to, by parameter."""
    text, found = kernel.text, dict[str, list[Node]]()
    written = set(targets(kernel.body))
    for node in walk(kernel.body):
        base = node.child_by_field_name("argument")
        if node.type != "subscript_expression" or base is None or node in written:
            continue
        behind = root(kernel, text.of(base), node)
        addressed = node.parent is not None and text.of(node.parent).startswith("&")
        if subscript_index(text, node) is None:
            continue
        if behind is None or not behind.constant or addressed or behind.type not in _LOADABLE:
            continue
        declared = kernel.names.lookup(text.of(base), node)
        if declared is not None and declared.type == behind.type and declared.constant:
            found.setdefault(behind.name, []).append(node)
    nested = {n for own in found.values() for n in own for m in own if m != n and inside(n, m)}
    return {name: own for name, own in found.items() if not nested & set(own)}


def _promised(kernel: Kernel, node: Node) -> bool:
    """Tell whether the pointer is said to overlap with nothing that is written."""
    base = node.child_by_field_name("argument")
    behind = root(kernel, kernel.text.of(base), node) if base is not None else None
    return behind is not None and "restrict" in kernel.text.of(behind.node)


def _plain_stores(kernel: Kernel) -> list[Node]:
    """Assignments to elements behind the kernel's pointers, where nothing reads them."""
    text, found = kernel.text, []
    for target in targets(kernel.body):
        base, change = target.child_by_field_name("argument"), target.parent
        if target.type != "subscript_expression" or base is None or change is None:
            continue
        sign = change.child_by_field_name("operator")
        behind = root(kernel, text.of(base), target)
        plain = sign is not None and text.of(sign) == "=" and behind is not None
        alone = change.parent is not None and change.parent.type == "expression_statement"
        if plain and alone and behind is not None and behind.type in _LOADABLE:
            found.append(change)
    return found


def _address(text: GpuText, subscript: Node) -> str:
    base, index = subscript.child_by_field_name("argument"), subscript_index(text, subscript)
    assert base is not None
    simple = index is not None and index.isidentifier()
    return f"{text.of(base)} + {index}" if simple else f"{text.of(base)} + ({index})"


def _streamed(text: GpuText, assignment: Node) -> Splice:
    left, right = (assignment.child_by_field_name(n) for n in ("left", "right"))
    assert left is not None and right is not None
    by_pointer = text.of(left).startswith("*")
    address = text.of(left)[1:] if by_pointer else _address(text, left)
    return replaced(assignment, f"__stcs({address}, {text.of(right)})")


def _only_for_global_memory(text: GpuText, name: str) -> bool:
    """Tell whether a storing function is only called with a kernel's pointers."""
    known = {kernel.node.id: kernel for kernel in kernels(text)}
    calls = 0
    for function in text.functions():
        for node in walk(function):
            if node.type != "identifier" or text.of(node) != name:
                continue
            call = node.parent
            if call is None or call.type == "function_declarator":
                continue
            arguments = call.child_by_field_name("arguments")
            kernel = known.get(function.id)
            if kernel is None or arguments is None or not is_kernel(text, function):
                return False
            first = text.of(arguments.named_children[0]).partition(" + ")[0]
            behind = root(kernel, first, node)
            if behind is None or behind.type not in _LOADABLE:
                return False
            calls += 1
    return calls > 0
