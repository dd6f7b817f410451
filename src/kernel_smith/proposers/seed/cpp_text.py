"""Inductor's C++ kernels as readable `extern "C"` functions of one self-contained source."""

from __future__ import annotations

import re

from kernel_smith.proposers.seed.cpp_atomics import with_plain_additions
from kernel_smith.proposers.seed.cpp_helpers import helpers_for
from kernel_smith.proposers.seed.cpp_vectors import with_vectors

_INCLUDE = re.compile(r"^\s*#include.*\n", re.MULTILINE)
_DIVISION_GUARD = re.compile(r"^.*inductor_cpu_(?:integer_div_error|throw_if).*\n", re.MULTILINE)
# Bounds of loops; elsewhere, as in `std::max`, the type matters.
_NUMBER = re.compile(r"(?<=[=<])static_cast<int64_t>\((-?\d+)L\)")
# One helper for all threads would be a race.
_SHARED_HELPER = re.compile(r"\bstatic ((?:Welford|CascadeSum)Helper<)")
_INDEX = "[static_cast<int64_t>("


def read_cpp_kernel(name: str, text: str) -> str:
    """Return one kernel under its own name, without the compiler's headers and needless casts."""
    text = _DIVISION_GUARD.sub("", _INCLUDE.sub("", text))
    text = re.sub(r'extern "C"\s+void\s+kernel\(', f'extern "C" void {name}(', text)
    text = re.sub(r"(extern \"C\" void \w+\([^)]*\))", _one_parameter_list, text)
    text = _SHARED_HELPER.sub(r"\1", text)
    text = _without_index_casts(_NUMBER.sub(r"\1", text)).strip() + "\n"
    return with_plain_additions(with_vectors(text)).strip()


def cpp_source(kernels: list[str]) -> str:
    """Return all kernels, after the helpers that they use."""
    body = "\n\n".join(kernels)
    return f"{helpers_for(body)}\n{body}\n"


def _one_parameter_list(found: re.Match[str]) -> str:
    return re.sub(r"\s*\n\s*", " ", found[1])


def _without_index_casts(text: str) -> str:
    """`p[static_cast<int64_t>(x0)]` as `p[x0]`: loop variables are 64 bits wide already."""
    begin = text.find(_INDEX)
    while begin >= 0:
        inner = begin + len(_INDEX)
        end = _closing(text, inner)
        if text[end + 1 : end + 2] == "]":
            text = f"{text[:begin]}[{text[inner:end]}{text[end + 1 :]}"
        begin = text.find(_INDEX, begin + 1)
    return text


def _closing(text: str, start: int) -> int:
    """Return the position of the parenthesis that closes the one before `start`."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)
