"""Edits of how a thread or a block adds up: several accumulators, shuffles, one pass for two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import identifiers, innermost, pragma_before
from kernel_smith.proposers.mutator.cpp.text import replaced
from kernel_smith.proposers.mutator.edit import Site, Splice, splice
from kernel_smith.proposers.mutator.gpu.bodies import root
from kernel_smith.proposers.mutator.gpu.strided import StridedLoop, end_of, strided_loops
from kernel_smith.proposers.mutator.gpu.text import GpuText, gpu_edit

_JOINED = {
    "+": "{a} += {b};",
    "*": "{a} *= {b};",
    "max": "{a} = {b} > {a} ? {b} : {a};",
    "min": "{a} = {b} < {a} ? {b} : {a};",
}


@gpu_edit(
    "split-thread-sum",
    "Let a thread add up in several variables side by side, so that its loads overlap. Sums may "
    "differ in the last digits.",
)
def split_thread_sum(text: GpuText) -> Iterator[Site]:
    for strided in strided_loops(text):
        body, loop = strided.body, strided.loop
        if not body.sums or body.writes or not innermost(loop) or pragma_before(loop) is not None:
            continue
        fresh = {f"{name}_{k}" for name in body.sums for k in range(1, 8)}
        fresh |= {f"{loop.variable}_{k}" for k in (*range(1, 8), "step")}
        if fresh & identifiers(" ".join(text.of(node) for node in body.nodes)):
            continue
        for factor in (2, 4, 8):
            code = _split(strided, factor)
            yield Site(strided.place, (replaced(loop.node, code),), f"{factor} accumulators")


def _split(strided: StridedLoop, factor: int) -> str:
    text, loop, sums = strided.kernel.text, strided.loop, strided.body.sums
    v, pad, step = loop.variable, text.indent(loop.node), f"{loop.variable}_step"
    lines = [
        "{",
        f"    const {loop.type} {step} = {loop.step};",
        f"    {loop.type} {v} = {loop.start};",
    ]
    for name, operator in sums.items():
        declared = strided.kernel.names.lookup(name, loop.node)
        assert declared is not None
        first = {"+": "0", "*": "1"}.get(operator, name)
        parts = ", ".join(f"{name}_{k} = {first}" for k in range(1, factor))
        lines.append(f"    {declared.type} {parts};")
    reach = f"{v} + {factor - 1}LL * {step}"
    lines.append(f"    for (; {reach} < {loop.end}; {v} += {factor} * {step}) {{")
    lines += [f"        {_copy(strided, k, pad + '        ')}" for k in range(factor)]
    lines.append("    }")
    lines.append(f"    for (; {v} < {loop.end}; {v} += {step}) {_copy(strided, 0, pad + '    ')}")
    for name, operator in sums.items():
        joined = _JOINED[operator]
        lines += [f"    {joined.format(a=name, b=f'{name}_{k}')}" for k in range(1, factor)]
    return f"\n{pad}".join([*lines, "}"])


def _copy(strided: StridedLoop, k: int, pad: str) -> str:
    """Return the body in braces, for the element that is `k` steps ahead."""
    text, loop, v = strided.kernel.text, strided.loop, strided.loop.variable
    nodes = strided.body.nodes
    code = text.data[nodes[0].start_byte : nodes[-1].end_byte].decode()
    old = text.indent(nodes[0])
    lines = [f"{pad}    {line.removeprefix(old)}".rstrip() for line in code.split("\n")]
    if k > 0:
        names = [node for node in strided.body.identifiers() if _is_own(strided, node)]
        renamed = [replaced(node, f"{text.of(node)}_{k}") for node in names]
        moved = [
            Splice(p.start - nodes[0].start_byte, p.end - nodes[0].start_byte, p.text)
            for p in renamed
        ]
        lines = [f"{pad}    {x.removeprefix(old)}" for x in splice(code, moved).split("\n")]
        steps = f"{k} * {v}_step" if k > 1 else f"{v}_step"
        lines.insert(0, f"{pad}    const {loop.type} {v}_{k} = {v} + {steps};")
    if len(lines) == 1:
        return f"{{ {lines[0].strip()} }}"
    return "\n".join(["{", *lines, f"{pad}}}"])


def _is_own(strided: StridedLoop, node: Node) -> bool:
    """Tell whether every copy of the body needs this name for itself."""
    return strided.kernel.text.of(node) in {strided.loop.variable, *strided.body.sums}


@gpu_edit(
    "fuse-moments",
    "Take the sum and the sum of squared deviations in one pass instead of two. Costs a few "
    "digits where values are large against their spread.",
)
def fuse_moments(text: GpuText) -> Iterator[Site]:
    for first, second in pairwise(strided_loops(text)):
        loop, other = first.loop, second.loop
        same = (first.kernel is second.kernel and first.over_grid == second.over_grid) and (
            _header(first) == _header(second) and loop.node.parent == other.node.parent
        )
        added, squared = _added(first), _squared(second)
        if not same or added is None or squared is None or added[1] != squared[1]:
            continue
        if re.search(r"\?|\|| [<>&=]+ ", added[1]) or re.search(
            rf"(?:\.|->){loop.variable}\b", added[1]
        ):
            continue
        if not _is_constant(first) or not _is_stable(first, second):
            continue
        fresh = {f"{name}_{w}" for name in (added[0], squared[0]) for w in _WORDS}
        if not fresh & identifiers(text.of(first.kernel.node)):
            yield Site(first.place, _fused(first, second, added, squared))


_WORDS = ("pivot", "shifted", "own", "offset")


def _header(strided: StridedLoop) -> tuple[str, ...]:
    loop = strided.loop
    return (loop.type, loop.variable, loop.start, loop.end, loop.step)


def _added(strided: StridedLoop) -> tuple[str, str] | None:
    """(sum, element) of `sum += element;`."""
    text, nodes = strided.kernel.text, strided.body.nodes
    match = re.fullmatch(r"(\w+) \+= ([^;]+);", text.of(nodes[0])) if len(nodes) == 1 else None
    if match is None or strided.body.sums.get(match[1]) != "+":
        return None
    return (match[1], match[2]) if _is_float(strided, match[1]) else None


def _squared(strided: StridedLoop) -> tuple[str, str, str] | None:
    """(sum, element, mean) of `const float d = element - mean; sum += d * d;`."""
    text, nodes = strided.kernel.text, strided.body.nodes
    code = " ".join(text.of(node) for node in nodes)
    pattern = r"const float (\w+) = ([^;]+) - (\w+); (\w+) \+= \1 \* \1;"
    match = re.fullmatch(pattern, code)
    if match is None or strided.body.sums.get(match[4]) != "+":
        return None
    return (match[4], match[2], match[3]) if _is_float(strided, match[4]) else None


def _is_float(strided: StridedLoop, name: str) -> bool:
    declared = strided.kernel.names.lookup(name, strided.loop.node)
    return declared is not None and declared.type == "float" and declared.kind == "plain"


def _is_constant(strided: StridedLoop) -> bool:
    """Tell whether all that an element is read from stays as it is while the kernel runs."""
    kernel = strided.kernel
    for node, declared in strided.body.outer_names():
        if declared.kind == "plain":
            if declared.name in kernel.names.assigned - {*strided.body.sums, strided.loop.variable}:
                return False
            continue
        behind = root(kernel, declared.name, node)
        if behind is None or not behind.constant or "restrict" not in kernel.text.of(behind.node):
            return False
    return True


def _is_stable(first: StridedLoop, second: StridedLoop) -> bool:
    """Bounds do not change between the loops, and the first element can be read by its index."""
    kernel = first.kernel
    words = identifiers(kernel.text.of(end_of(first.loop))) | identifiers(first.loop.step)
    between = (first.loop.node.end_byte, second.loop.node.start_byte)
    squared = _squared(second)
    mean = kernel.names.lookup(squared[2], second.loop.node) if squared else None
    known = mean is not None and mean.type == "float" and mean.kind == "plain"
    fixed = mean is not None and mean.constant and between[0] <= mean.node.start_byte < between[1]
    return known and fixed and not words & kernel.names.assigned


def _fused(
    first: StridedLoop, second: StridedLoop, added: tuple[str, str], squared: tuple[str, str, str]
) -> tuple[Splice, ...]:
    text, loop = first.kernel.text, first.loop
    pad, v = text.indent(loop.node), loop.variable
    total, element = added
    squares, _, mean = squared
    at_start = re.sub(rf"\b{v}\b", "0", element)
    pivot, shifted, own = f"{total}_pivot", f"{total}_shifted", f"{total}_own"
    one = f"{squares}_shifted"
    lines = [
        "// Deviations from the first element; the mean is taken into account when it is known.",
        f"const float {pivot} = {loop.end} > 0 ? {at_start} : 0.0f;",
        f"float {shifted} = 0.0f, {one} = 0.0f, {own} = 0.0f;",
        f"{loop.header()} {{",
        f"    const float {total}_offset = {element} - {pivot};",
        f"    {shifted} += {total}_offset;",
        f"    {one} += {total}_offset * {total}_offset;",
        f"    {own} += 1.0f;",
        "}",
        f"{total} += {shifted} + {own} * {pivot};",
    ]
    offset = f"{squares}_offset"
    later = [
        f"const float {offset} = {mean} - {pivot};",
        f"{squares} += {one} - {offset} * (2.0f * {shifted} - {own} * {offset});",
    ]
    return (
        replaced(loop.node, f"\n{pad}".join(lines)),
        replaced(second.loop.node, f"\n{pad}".join(later)),
    )
