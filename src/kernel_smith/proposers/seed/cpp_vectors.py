"""Loops of Inductor's scalar C++ as vector code: the processor's compiler makes it, once it may.

Four things keep it from doing so. A sum must not be added up in another order, unless somebody says
that it may. A call of `std::exp` stops everything. What is chosen between two values counts as a
branch, unless the loop is to be made into vectors in any case. And where the elements of an inner
loop lie far apart, it is the loop around it whose iterations are neighbours in memory.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from kernel_smith.proposers.seed.cpp_columns import by_one_thread, side_by_side
from kernel_smith.proposers.seed.cpp_halves import through_floats
from kernel_smith.proposers.seed.cpp_lanes import in_lanes
from kernel_smith.proposers.seed.cpp_loops import LOOP, NO_CONFLICT, Loop, loop_at, loops_of
from kernel_smith.proposers.seed.cpp_tables import with_tables

Sums: TypeAlias = Mapping[str, Sequence[str]]
"""What a loop adds up, by how."""

_BLOCK = 1024  # iterations of a loop that threads share, or whose halves go through a buffer
_NAME = r"[A-Za-z_]\w*"
_ACCUMULATED = (
    (re.compile(rf"^\s*({_NAME}) = \1 \+ \w+;$", re.MULTILINE), "+"),
    (re.compile(rf"^\s*({_NAME}) = \1 \* \w+;$", re.MULTILINE), "*"),
    (re.compile(rf"^\s*({_NAME}) = max_propagate_nan\(\1, \w+\);$", re.MULTILINE), "largest"),
    (re.compile(rf"^\s*({_NAME}) = min_propagate_nan\(\1, \w+\);$", re.MULTILINE), "smallest"),
    (re.compile(rf"^\s*({_NAME}) = \1 \| \w+;$", re.MULTILINE), "|"),
)
# Whatever else carries something from one element to the next, or writes where others may.
_OBSTACLES = re.compile(r"\b\w+_combine\(|\batomic_add|(?<!&)&(?!&)|\bbreak\b|\bcontinue\b|\bif\b")
_STORE = re.compile(rf"\b({_NAME})\[([^\]]*)\] = ")
_LOAD = re.compile(rf"^ *auto \w+ = ({_NAME})\[([^\]]*)\];\n", re.MULTILINE)
_ALIAS = re.compile(rf"^ *auto ({_NAME}) = ({_NAME});$", re.MULTILINE)
_SUBSCRIPT = re.compile(r"\[([^\[\]]*)\]")
_CALLS = re.compile(r"\bstd::(exp|expm1|log|log1p|tanh|erf|frexp)\(")
_OWN_RESULT = re.compile(r"\bstd::frexp\(\w+, &\w+\)")  # written to a variable of the iteration
# Between loops that threads share out together there is no room for a pragma.
_COLLAPSED = re.compile(r"#pragma omp for collapse\(\d+\)\n(?: *for\(.*\n *\{\n)+\Z")
_PARALLEL_LOOP = re.compile(r"#pragma omp for\n\Z")

_CASCADE = re.compile(r"^\s*CascadeSumHelper<float, \d+> \w+\([^\n]*\);\n", re.MULTILINE)
_CASCADE_STEP = re.compile(rf"\b({_NAME}) = cascade_sum_combine\((\w+), &\w+\);")
_ANY = re.compile(rf"\b({_NAME}) = \1 \|\| ")
_CASCADE_END = re.compile(r"^\s*\w+ = cascade_sum_final\(&\w+\);\n", re.MULTILINE)


def with_vectors(kernel: str) -> str:
    """Return the same kernel, with loops that a compiler may turn into vector code."""
    return _mark_loops(_whole_words(_plain_sums(kernel)))


def _plain_sums(kernel: str) -> str:
    """Long sums in double precision, whose rounding errors need no chunks to stay small."""
    for total in dict.fromkeys(name for name, _ in _CASCADE_STEP.findall(kernel)):
        kernel = re.sub(rf"\bfloat {total} = 0;", f"double {total} = 0;", kernel)
    kernel = _CASCADE_STEP.sub(r"\1 = \1 + \2;", _CASCADE.sub("", kernel))
    return _CASCADE_END.sub("", kernel)


def _whole_words(kernel: str) -> str:
    """Whether any is true, in 32 bits: beside floats g++ makes no vectors of single bytes."""
    for name in dict.fromkeys(_ANY.findall(kernel)):
        kernel = re.sub(rf"\bbool {name} = 0;", f"int32_t {name} = 0;", kernel)
    return _ANY.sub(r"\1 = \1 | ", kernel)


def _mark_loops(kernel: str) -> str:
    loops = loops_of(kernel)
    inner = [loop for loop in loops if not LOOP.search(loop.body)]
    for loop in reversed(inner):
        around = [o for o in loops if o.begin < loop.begin and loop.end <= o.end]
        kernel = _marked(kernel, loop, around[-1] if around else None)
    return kernel


def _marked(kernel: str, loop: Loop, around: Loop | None) -> str:
    """With a pragma for the loop, or for the one around it, where that is what is wanted."""
    sums = _accumulated(loop.body)
    if sums is None or _conflicts(loop.body, loop.variable):
        return kernel
    before = kernel[: loop.begin]
    near = _neighbours(loop.body, loop.variable)
    shared = _PARALLEL_LOOP.search(before)
    if near and around and not sums and NO_CONFLICT.search(before):
        tabled = with_tables(kernel, loop)
        if tabled:
            return tabled
    if near and (sums or shared or NO_CONFLICT.search(before)):
        place = _shared if shared else _alone
        return place(*_without_calls(kernel, loop), sums)
    if not sums:  # of such loops the compiler says itself whether elements depend on each other
        return kernel
    if around is None or not _neighbours(around.body, around.variable):
        return kernel
    if len(LOOP.findall(around.body)) > 1:
        return kernel
    before_around = kernel[: around.begin]
    vectors, marked = _without_calls(kernel, around)
    columns = side_by_side(by_one_thread(marked), [one for names in sums.values() for one in names])
    if columns is None:
        may_be_marked = "#pragma" not in around.body and not _COLLAPSED.search(before_around)
        return _insert(vectors, marked, "simd") if may_be_marked else kernel
    return NO_CONFLICT.sub("", vectors[: marked.begin]) + columns + vectors[marked.end :]


def _without_calls(kernel: str, loop: Loop) -> tuple[str, Loop]:
    """With functions of our own in a loop, which are slower than the library's in any other."""
    text = _CALLS.sub(r"branchless::\1(", kernel[loop.begin : loop.end])
    kernel = kernel[: loop.begin] + text + kernel[loop.end :]
    found = LOOP.match(kernel, loop.begin)
    assert found is not None
    return kernel, loop_at(kernel, found)


def _accumulated(body: str) -> Sums | None:
    """Return what is added up, by how; None where something else stands in the way."""
    sums: dict[str, list[str]] = {}
    for pattern, how in _ACCUMULATED:
        for name in dict.fromkeys(pattern.findall(body)):
            sums.setdefault(how, []).append(name)
        body = pattern.sub("", body)
    return None if _OBSTACLES.search(_OWN_RESULT.sub("", body)) else sums


def _conflicts(body: str, variable: str) -> bool:
    """May two iterations write to the same place? Not to places that the loop itself counts."""
    places = [place for _, place in _STORE.findall(body)]
    return any("tmp" in place or not re.search(rf"\b{variable}\b", place) for place in places)


def _neighbours(body: str, variable: str) -> bool:
    """Does each iteration work on the element after that of the one before?"""
    places = [p for p in _SUBSCRIPT.findall(body) if re.search(rf"\b{variable}\b", p)]
    terms = [rf"(?:^|\+ ?){variable}(?:$| ?\+)", rf"\b{variable}\b"]
    return bool(places) and all(
        re.search(terms[0], place) and len(re.findall(terms[1], place)) == 1 for place in places
    )


def _alone(kernel: str, loop: Loop, sums: Sums) -> str:
    """What is the same for all iterations is read before them. Left inside, it makes g++ think of
    the first one as different from the others."""
    stored = {name for name, _ in _STORE.findall(loop.body)}
    stored |= {alias for alias, name in _ALIAS.findall(kernel) if name in stored}
    stored |= {name for alias, name in _ALIAS.findall(kernel) if alias in stored}
    same = [
        found[0]
        for found in _LOAD.finditer(loop.body)
        if found[1] not in stored and not re.search(rf"\b{loop.variable}\b|tmp", found[2])
    ]
    body = loop.body
    for line in same:
        body = body.replace(line, "", 1)
    indent = loop.indent
    lines = [_in_whole_words(line.strip(), kernel) for line in same]
    body, inverses = _without_divisions(body, lines, kernel)
    before = "".join(f"{indent}{line}\n" for line in [*lines, *inverses])
    text = _along_a_row(kernel, replace(loop, body=body), sums)
    if same or text.startswith(f"{indent}float "):  # names that hold for this loop only
        text = f"{indent}{{\n{before}{text}{indent}}}\n"
    return NO_CONFLICT.sub("", kernel[: loop.begin]) + text + kernel[loop.end :]


def _without_divisions(body: str, same: Sequence[str], kernel: str) -> tuple[str, list[str]]:
    """Numbers that all elements are divided by are divided by once: results may differ in the last
    digit, as they do for other reasons."""
    inverses = []
    for name, pointer in re.findall(
        rf"^auto ({_NAME}) = ({_NAME})\[", "\n".join(same), re.MULTILINE
    ):
        if re.search(rf"\b(?:float|double)\* {pointer}\b", kernel) and f" / {name};" in body:
            body = body.replace(f" / {name};", f" * {name}_inverse;")
            inverses.append(f"auto {name}_inverse = 1 / {name};")
    return body, inverses


def _along_a_row(kernel: str, loop: Loop, sums: Sums) -> str:
    """Return the text of a loop that one thread runs, with a pragma."""
    buffered = through_floats(kernel, loop, loop.count, "0", loop.count)
    if buffered.is_used and int(loop.count) > _BLOCK:
        return _by_blocks(kernel, loop, sums)
    inner = buffered.loop
    marked = f"{loop.indent}#pragma omp {_simd(sums)}\n{loop.indent}{loop.head}\n{inner.body}"
    return buffered.around(in_lanes(kernel, inner, sums) or marked, loop.indent)


def _shared(kernel: str, loop: Loop, sums: Sums) -> str:
    """Threads share out blocks, and each adds up its own: into a variable that the others do not
    see, so that it cannot be the sum of a shared loop."""
    if not sums and not through_floats(kernel, loop, loop.count, "0", loop.count).is_used:
        return _insert(kernel, loop, "simd")
    return kernel[: loop.begin] + _by_blocks(kernel, loop, sums) + kernel[loop.end :]


def _by_blocks(kernel: str, loop: Loop, sums: Sums) -> str:
    name, count, indent = loop.variable, loop.count, loop.indent
    first, end = f"{name}_block", f"{name}_end"
    buffered = through_floats(kernel, loop, str(_BLOCK), first, f"{end} - {first}")
    inner = (
        f"{indent}    #pragma omp {_simd(sums)}\n"
        f"{indent}    for(int64_t {name}={first}; {name}<{end}; {name}+=1)\n"
        f"{textwrap.indent(buffered.loop.body, '    ')}"
    )
    return (
        f"{indent}for(int64_t {first}=0; {first}<{count}; {first}+={_BLOCK})\n"
        f"{indent}{{\n"
        f"{indent}    const int64_t {end} = std::min<int64_t>({first} + {_BLOCK}, {count});\n"
        f"{buffered.around(inner, f'{indent}    ')}"
        f"{indent}}}\n"
    )


def _simd(sums: Sums) -> str:
    return "simd" + "".join(f" reduction({how}:{', '.join(names)})" for how, names in sums.items())


def _in_whole_words(load: str, kernel: str) -> str:
    found = _LOAD.match(f"{load}\n")
    assert found is not None
    is_truth = re.search(rf"\bbool\* {found[1]}\b", kernel)
    return re.sub(r" = (.*);", r" = whole_word(\1);", load) if is_truth else load


def _insert(kernel: str, loop: Loop, what: str) -> str:
    """A loop that is shared out among threads already has a pragma, which takes one word more."""
    before, after = NO_CONFLICT.sub("", kernel[: loop.begin]), kernel[loop.begin :]
    shared = _PARALLEL_LOOP.search(before)
    if shared:
        return before[: shared.start()] + f"#pragma omp for {what}\n" + after
    return f"{before}{loop.indent}#pragma omp {what}\n{after}"
