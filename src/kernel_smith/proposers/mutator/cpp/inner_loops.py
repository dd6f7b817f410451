"""Edits of innermost loops: vector instructions, unrolling, several accumulators."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_smith.proposers.mutator.cpp.dependence import dependences
from kernel_smith.proposers.mutator.cpp.loops import (
    Loop,
    identifiers,
    innermost,
    is_leftover,
    places,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import names_of, targets
from kernel_smith.proposers.mutator.cpp.text import CppText, cpp_edit, replaced, rewritten, walk
from kernel_smith.proposers.mutator.cpp.threads import reduction_clauses
from kernel_smith.proposers.mutator.edit import Site

_SMALL = (3, 4, 5, 7)
_POWERS = (16, 32, 64, 128)
_NUMBERS = {"float", "double", "int", "int32_t", "int64_t"}


def renamed(text: CppText, loop: Loop, new_names: dict[str, str]) -> str:
    """Return the body of a loop with other names in it."""
    found = [n for n in walk(loop.body) if n.type == "identifier" and text.of(n) in new_names]
    return rewritten(text, loop.body, [replaced(n, new_names[text.of(n)]) for n in found])


def leaves_early(loop: Loop) -> bool:
    return any(n.type in ("continue_statement", "break_statement") for n in walk(loop.body))


def bare_innermost(text: CppText) -> Iterator[tuple[str, Loop]]:
    """Innermost loops that no pragma speaks about yet."""
    for place, loop in places(text):
        if innermost(loop) and pragma_before(loop) is None:
            yield place, loop


@cpp_edit(
    "simd-loop",
    "Let the compiler use vector instructions for a loop, also where it adds up in another order.",
)
def simd(text: CppText) -> Iterator[Site]:
    for place, loop in bare_innermost(text):
        reductions = dependences(loop)
        if reductions is not None:
            line = f"#pragma omp simd{reduction_clauses(reductions)}"
            yield Site(place, text.before(loop.node, line))


@cpp_edit("unroll-loop", "Unroll an innermost loop.")
def unroll(text: CppText) -> Iterator[Site]:
    for place, loop in bare_innermost(text):
        for factor in (4, 8):
            line = f"#pragma GCC unroll {factor}"
            yield Site(place, text.before(loop.node, line), f"by {factor}")


@cpp_edit("split-accumulator", "Add up in several variables side by side, so that none waits.")
def split_accumulator(text: CppText) -> Iterator[Site]:
    for place, loop in bare_innermost(text):
        reductions = dependences(loop)
        if not reductions or loop.step != "1" or leaves_early(loop) or is_leftover(loop):
            continue
        names = names_of(text, loop.function)
        types = {name: names.lookup(name, loop.node) for name in reductions}
        if all(d and d.kind == "plain" and d.type in _NUMBERS for d in types.values()):
            for factor in (2, 4, 8):
                kinds = {name: d.type for name, d in types.items() if d}
                new = _split(text, loop, reductions, kinds, factor)
                yield Site(place, (replaced(loop.node, new),), f"{factor} accumulators")


def _split(
    text: CppText, loop: Loop, reductions: dict[str, str], types: dict[str, str], factor: int
) -> str:
    pad, v = text.indent(loop.node), loop.variable
    lines = ["{"]
    for name, operator in reductions.items():
        first = "0" if operator == "+" else name
        parts = ", ".join(f"{name}_{k} = {first}" for k in range(1, factor))
        lines.append(f"    {types[name]} {parts};")
    whole, first, end = f"{v}_whole", f"({loop.start})", f"({loop.end})"
    count = f"({end} - {first}) / {factor} * {factor}"
    lines.append(f"    const {loop.type} {whole} = {first} + {count};")
    lines.append(f"    {loop.header(end=whole, step=str(factor))} {{")
    lines.append(f"        {text.of(loop.body)}")
    for k in range(1, factor):
        body = renamed(text, loop, {v: f"{v}_{k}"} | {name: f"{name}_{k}" for name in reductions})
        lines.append(f"        {{ const {loop.type} {v}_{k} = {v} + {k}; {body} }}")
    lines += ["    }", f"    {loop.header(start=whole)} {text.of(loop.body)}"]
    for name, operator in reductions.items():
        for k in range(1, factor):
            part = f"{name}_{k}"
            sign = ">" if operator == "max" else "<"
            chosen = f"{name} = {part} {sign} {name} ? {part} : {name};"
            lines.append("    " + (f"{name} += {part};" if operator == "+" else chosen))
    return f"\n{pad}".join([*lines, "}"])


@cpp_edit(
    "specialise-bound",
    "Compile an innermost loop separately for common trip counts, and choose when it runs.",
)
def specialise(text: CppText) -> Iterator[Site]:
    for place, loop in bare_innermost(text):
        fixed = {text.of(target) for target in targets(loop.body)}
        if not loop.end.isidentifier() or loop.start != "0" or identifiers(loop.end) & fixed:
            continue
        if is_leftover(loop) or f"if ({loop.end} == " in text.of(loop.function):
            continue
        for counts in (_SMALL, _POWERS):
            body = text.of(loop.body)
            cases = [
                f"if ({loop.end} == {n}) {{ {loop.header(end=str(n))} {body} }}" for n in counts
            ]
            other = f"{{ {loop.header()} {body} }}"
            new = f"\n{text.indent(loop.node)}else ".join([*cases, other])
            choice = ", ".join(map(str, counts))
            yield Site(place, (replaced(loop.node, f"{{ {new} }}"),), choice)
