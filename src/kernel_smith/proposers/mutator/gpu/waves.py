"""An edit of reductions in shared memory: the last steps without memory and without barriers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import function_name
from kernel_smith.proposers.mutator.cpp.names import names_of
from kernel_smith.proposers.mutator.cpp.text import inside, replaced, walk
from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.gpu.kernels import (
    is_kernel,
    is_shared,
    kernels,
    local_value,
    runs_on_device,
)
from kernel_smith.proposers.mutator.gpu.polynomial import number
from kernel_smith.proposers.mutator.gpu.text import GpuText, gpu_edit

# `if (t < s) buffer[t] += buffer[t + s];` or with a function of both; then the barrier.
_HEADER = re.compile(
    r"for \((?:unsigned |)(?:int|unsigned) (?P<s>\w+) = (?P<width>\w+(?:\.x)?) / 2; "
    r"(?P=s) > 0; (?P=s) (?:/= 2|>>= 1)\) "
)
_STEP = re.compile(
    r"\{ if \((?P<t>\w+(?:\.x)?) < (?P<s>\w+)\) (?P<open>\{ )?"
    r"(?P<buffer>\w+)\[(?P=t)\] (?:(?P<sign>[+*])= (?P=buffer)\[(?P=t) \+ (?P=s)\]"
    r"|= (?P<choice>fmaxf|fminf|max|min)\("
    r"(?P=buffer)\[(?P=t)\], (?P=buffer)\[(?P=t) \+ (?P=s)\]\));"
    r"(?(open) \}) __syncthreads\(\); \}"
)


@gpu_edit(
    "wave-reduction",
    "Do the last steps of a reduction in shared memory by shuffles within a wave. Sums may differ "
    "in the last digits.",
)
def wave_reduction(text: GpuText) -> Iterator[Site]:
    known = kernels(text)
    total = [f for f in text.functions() if is_kernel(text, f)]
    widths = {kernel.threads for kernel in known}
    if len(known) != len(total) or len(widths) != 1:
        return
    threads = widths.pop()
    if threads < text.wave or threads & (threads - 1):
        return
    for function in text.functions():
        if not runs_on_device(text, function):
            continue
        count = 0
        for loop in (n for n in walk(function) if n.type == "for_statement"):
            splices = _shuffled(text, function, loop, threads)
            if splices:
                count += 1
                place = f"reduction in {function_name(text, function)}"
                yield Site(f"{place} no. {count}" if count > 1 else place, splices)


def _shuffled(text: GpuText, function: Node, loop: Node, threads: int) -> tuple[Splice, ...]:
    code = re.sub(r"\s+", " ", re.sub(r"//[^\n]*|/\*.*?\*/", "", text.of(loop), flags=re.S))
    header = _HEADER.match(code)
    step = _STEP.fullmatch(code[header.end() :]) if header else None
    condition = loop.child_by_field_name("condition")
    if header is None or step is None or condition is None or step["s"] != header["s"]:
        return ()
    width = local_value(text, function, header["width"], loop, threads)
    thread = local_value(text, function, step["t"], loop, threads)
    if width != number(threads) or thread != {("threadIdx_x",): 1}:
        return ()
    kind = _buffer_type(text, function, loop, step["buffer"], step["t"])
    if kind is None:
        return ()
    shorter = replaced(condition, f"{header['s']} >= {text.wave}")
    return (shorter, Splice(loop.end_byte, loop.end_byte, _last_steps(text, loop, step, kind)))


def _last_steps(text: GpuText, loop: Node, step: re.Match[str], kind: str) -> str:
    pad, t, buffer = text.indent(loop), step["t"], step["buffer"]
    value = f"{buffer}_value"
    other = text.shuffled(value, f"{buffer}_lane")
    joined = f"{value} {step['sign']}= {other};" if step["sign"] else ""
    joined = joined or f"{value} = {step['choice']}({value}, {other});"
    lines = [
        "",
        f"if ({t} < {text.wave}) {{",
        f"    {kind} {value} = {buffer}[{t}];",
        f"    for (int {buffer}_lane = {text.wave // 2}; {buffer}_lane > 0; {buffer}_lane /= 2) {{",
        f"        {joined}",
        "    }",
        f"    if ({t} == 0) {buffer}[0] = {value};",
        "}",
        "__syncthreads();",
    ]
    return f"\n{pad}".join(lines)


def _buffer_type(text: GpuText, function: Node, loop: Node, buffer: str, t: str) -> str | None:
    """Return the type of the buffer, if nothing but its first element is used after the
    reduction."""
    declared = names_of(text, function).lookup(buffer, loop)
    above = loop.parent
    if declared is None or declared.kind != "array" or not is_shared(text, declared.node):
        return None
    if declared.type not in ("float", "double", "int") or above is None:
        return None
    # All threads of the block come here, as they must for the barrier after the last steps.
    if above != function.child_by_field_name("body"):
        return None
    for node in walk(function):
        own = node.type == "identifier" and text.of(node) == buffer
        if not own or inside(node, loop) or inside(node, declared.node):
            continue
        use = text.of(node.parent) if node.parent is not None else ""
        change = node.parent.parent if node.parent is not None else None
        left = change.child_by_field_name("left") if change is not None else None
        is_target = left is not None and left == node.parent
        if use != f"{buffer}[0]" and not (use == f"{buffer}[{t}]" and is_target):
            return None
    return declared.type
