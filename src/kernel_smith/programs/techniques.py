"""The techniques of a candidate, as far as its source shows them.

`techniques` names all that are found, the most telling first: what few programs do, and what
decides how a program is organised, comes before what nearly all of them do. Names are guesses from
patterns; they sort candidates into cells and prove nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from kernel_smith.programs.normalise import Program, program
from kernel_smith.records import Candidate

Detector = Callable[[Program], bool]

PLAIN = "plain"

_STEPPED_LOOP = re.compile(r"\bfor \( [^;]*;[^;]*; [^;{]*?\+= [A-Za-z_]\w* \)")
_NUMBERED_SUM = re.compile(r"\b([A-Za-z_]+)(\d+) (?:\+= |= [^;=]*\b\1\2\b)")
_ARRAY_OF_SUMS = re.compile(r"\b(?:acc|sum|total|partial)\w* \[ \w+ \]")


def _written(pattern: str) -> Detector:
    """Return a detector of kernel text. Tokens have one space between them."""
    compiled = re.compile(pattern)
    return lambda code: compiled.search(code.kernel_text) is not None


def _uses(pattern: str) -> Detector:
    """Return a detector of names in the Python part."""
    compiled = re.compile(pattern)
    return lambda code: any(compiled.fullmatch(word) for word in code.words)


def _has_tiles(code: Program) -> bool:
    stepped = len(_STEPPED_LOOP.findall(code.kernel_text)) >= 2
    return stepped or re.search(r"(?i)tile", code.kernel_text) is not None


def _has_accumulators(code: Program) -> bool:
    numbers = defaultdict(set)
    for stem, number in _NUMBERED_SUM.findall(code.kernel_text):
        numbers[stem].add(number)
    several = any(len(found) >= 2 for found in numbers.values())
    return several or _ARRAY_OF_SUMS.search(code.kernel_text) is not None


_OF_KERNEL_TEXT: dict[str, Detector] = {
    "tiled": _has_tiles,
    "accumulators": _has_accumulators,
    "unrolled": _written(r"#pragma[^\n]*\bunroll"),
    "vectorised": _written(
        r"#pragma omp[^\n]*\bsimd|\bivdep\b|\bvector_size\b|\b_mm\d*_|\bv[a-z]\w*q_\w*[fsu]\d+"
    ),
    "parallel": _written(r"#pragma omp[^\n]*\b(?:parallel|task)|\bstd :: j?thread\b"),
}
_OF_TRITON: dict[str, Detector] = {
    "persistent": _uses(r"multi_processor_count|(?i:num_sms?)"),
    "split": _uses(r"(?i)atomic_(?:add|max|min|xchg|cas)|\w*split_?k\w*|\w*splits|split_\w+"),
    "block-pointers": _uses(r"make_block_ptr|make_tensor_descriptor|TensorDescriptor"),
    "dot": _uses(r"dot|dot_scaled"),
    "autotuned": _uses(r"autotune"),
    "eviction": _uses(r"eviction_policy|cache_modifier"),
}

TECHNIQUES: tuple[str, ...] = (*_OF_KERNEL_TEXT, *_OF_TRITON, PLAIN)


def techniques(candidate: Candidate) -> tuple[str, ...]:
    """Return all techniques that the source shows, the most telling first."""
    return tuple(_found(candidate))


def most_telling(candidate: Candidate) -> str:
    """Return the first of them, or `PLAIN`. What follows it is not looked for."""
    return next(_found(candidate), PLAIN)


def _found(candidate: Candidate) -> Iterator[str]:
    detectors = _OF_TRITON if candidate.backend == "triton" else _OF_KERNEL_TEXT
    code = program(candidate.source)
    return (name for name, shows in detectors.items() if shows(code))
