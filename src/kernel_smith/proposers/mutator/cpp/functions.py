"""Edits of functions and of what they call: parameters, flags, and exponentials in vectors."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.dependence import dependences
from kernel_smith.proposers.mutator.cpp.loops import (
    innermost,
    loops,
    named_functions,
    pragma_before,
)
from kernel_smith.proposers.mutator.cpp.names import names_of
from kernel_smith.proposers.mutator.cpp.text import CppText, cpp_edit, inside, replaced, walk
from kernel_smith.proposers.mutator.cpp.threads import reduction_clauses
from kernel_smith.proposers.mutator.edit import Site, Splice

# Within two units in the last place of the right answer. The constant that is added and subtracted
# rounds to an integer; scaling in two steps reaches subnormal results.
VECTOR_EXP = """
#include <cstdint>
#include <cstring>

static inline float vector_exp(float x) {
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    const float shifted = x * 1.44269504f + 12582912.0f;
    const float whole = shifted - 12582912.0f;
    const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const int32_t power = bits - 0x4b400000;
    const int32_t first = power >> 1;
    const int32_t first_bits = (first + 127) << 23;
    const int32_t second_bits = (power - first + 127) << 23;
    float a, b;
    std::memcpy(&a, &first_bits, sizeof a);
    std::memcpy(&b, &second_bits, sizeof b);
    return p * a * b;
}
"""

# A series where the exponential would cancel.
VECTOR_TANH = """
static inline float vector_tanh(float x) {
    const float size = x < 0.0f ? -x : x;
    const float far = 1.0f - 2.0f / (vector_exp(2.0f * size) + 1.0f);
    const float s = x * x;
    const float near = size * (1.0f + s * (-0.333333333f + s * (0.133333333f + s * -0.053968254f)));
    const float t = size < 0.15f ? near : far;
    return x < 0.0f ? -t : t;
}
"""


# Branches on numbers can become selections only if a comparison may be made without need. Programs
# are compiled so anyway; a text that is taken elsewhere says it itself, and stays the one that
# tables of judged edits know.
QUIET = '\n#pragma GCC optimize("no-trapping-math", "no-math-errno")'


@cpp_edit("restrict-parameters", "Promise that the pointers of a function do not overlap.")
def restrict(text: CppText) -> Iterator[Site]:
    for place, function in named_functions(text):
        stars = [
            star
            for node in walk(function)
            if node.type == "parameter_declaration"
            for star in _stars(text, node)
        ]
        if len(stars) > 1:
            splices = tuple(Splice(s.end_byte, s.end_byte, " __restrict__") for s in stars)
            yield Site(place, splices)


def _stars(text: CppText, parameter: Node) -> Iterator[Node]:
    declarator = parameter.child_by_field_name("declarator")
    if declarator is None or declarator.type != "pointer_declarator":
        return
    if "restrict" not in text.of(parameter):
        yield declarator.children[0]


@cpp_edit("byte-flags", "Keep flags in bytes instead of packed bits.")
def byte_flags(text: CppText) -> Iterator[Site]:
    for node in walk(text.root):
        if node.type == "template_type" and text.of(node).replace(" ", "") == "vector<bool>":
            yield Site(f"flags on line {node.start_point[0]}", (replaced(node, "vector<char>"),))


@cpp_edit(
    "vector-exponential",
    "Compute the exponentials and hyperbolic tangents of a loop in vectors, by polynomials.",
)
def vector_exponential(text: CppText) -> Iterator[Site]:
    if "vector_exp" in text.text:
        return
    for place, function in named_functions(text):
        in_float = _in_vectors(text, function, ("float",))
        in_both = _in_vectors(text, function, ("float", "double"))
        if in_float:
            yield Site(place, (*_helpers(text, function), *in_float))
        if len(in_both) > len(in_float):
            choice = "also in double precision"
            yield Site(place, (*_helpers(text, function), *in_both), choice)


def _helpers(text: CppText, function: Node) -> tuple[Splice, ...]:
    at = _first_function(text)
    quiet = () if QUIET in text.text else (Splice(0, 0, QUIET),)
    text_of_helpers = VECTOR_EXP + (VECTOR_TANH if "tanh" in text.of(function) else "")
    return (*quiet, Splice(at, at, text_of_helpers + "\n"))


def _in_vectors(text: CppText, function: Node, types: tuple[str, ...]) -> list[Splice]:
    """Return the calls in loops that vector instructions can run, and a pragma for each such
    loop."""
    names = names_of(text, function)
    splices: list[Splice] = []
    for loop in loops(text):
        reductions = dependences(loop) if inside(loop.node, function) and innermost(loop) else None
        if reductions is None:
            continue
        changed = []
        for call, name, argument in _exponentials(text, loop.body):
            type_name = names.type_of(argument)
            if type_name in types:
                value = text.of(argument)
                value = f"static_cast<float>({value})" if type_name == "double" else value
                changed.append(replaced(call, f"vector_{name}({value})"))
        if changed and pragma_before(loop) is None:
            splices += text.before(loop.node, f"#pragma omp simd{reduction_clauses(reductions)}")
        splices += changed
    return splices


def _exponentials(text: CppText, body: Node) -> Iterator[tuple[Node, str, Node]]:
    """Calls of `exp` and `tanh` with their argument, without another such call inside."""
    for node in walk(body):
        called, arguments = (node.child_by_field_name(n) for n in ("function", "arguments"))
        if node.type != "call_expression" or called is None or arguments is None:
            continue
        name = text.of(called).removeprefix("std::").removesuffix("f")
        alone = len(arguments.named_children) == 1
        if name in ("exp", "tanh") and alone and "exp(" not in text.of(arguments):
            yield node, name, arguments.named_children[0]


def _first_function(text: CppText) -> int:
    """Tell where functions begin, on the top level."""
    kinds = ("function_definition", "template_declaration", "linkage_specification")
    for node in text.root.named_children:
        if node.type in kinds or node.type == "namespace_definition":
            return node.start_byte
    return 0
