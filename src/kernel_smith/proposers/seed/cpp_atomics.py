"""Additions to places that several threads may meet at: atomic, unless there is one thread only.

An atomic addition is slow, and keeps a loop from becoming vector code. So a loop with atomic
additions gets a twin without them, for a thread that is alone.
"""

from __future__ import annotations

import re

_INNER_LOOP = re.compile(
    r"^(?P<pragma> *#pragma GCC ivdep\n)?"
    r"(?P<head>(?P<indent> *)for\(int64_t (?P<variable>\w+)=0; [^\n]*\)\n)"
    r"(?P<body>(?P=indent)\{\n(?:(?!^(?P=indent)\}\n)(?! *for\().*\n)*(?P=indent)\}\n)",
    re.MULTILINE,
)
_ATOMIC = re.compile(r"\batomic_add\(&(\w+\[[^\]]*\]), (.*)\);$", re.MULTILINE)
_DEFINITION = re.compile(r"^ *auto (\w+) = (.*);$", re.MULTILINE)
_SHARED = re.compile(r"#pragma omp for[^\n]*\n\Z")
_REGION = re.compile(r"^( *)int tid = omp_get_thread_num\(\);\n", re.MULTILINE)


def with_plain_additions(kernel: str) -> str:
    """Return the same kernel, which adds without locks where no other thread can meet it."""
    if "atomic_add(" not in kernel:
        return kernel
    if not _REGION.search(kernel):  # in no parallel region there is one thread
        return _ATOMIC.sub(r"\1 += \2;", kernel)
    twins = _INNER_LOOP.sub(_with_twin, kernel)
    return _REGION.sub(r"\g<0>\1const bool alone = omp_get_num_threads() == 1;\n", twins)


def _with_twin(loop: re.Match[str]) -> str:
    body, indent = loop["body"], loop["indent"]
    if not _ATOMIC.search(body):
        return loop[0]
    if _SHARED.search(loop.string[: loop.start()]):  # nothing may come between
        return _ATOMIC.sub(r"if (alone) \1 += \2; else \g<0>", loop[0])
    apart = all(_lie_apart(place, body, loop["variable"]) for place, _ in _ATOMIC.findall(body))
    plain = loop["head"] + _ATOMIC.sub(r"\1 += \2;", body)
    lines = f"{indent}#pragma omp simd\n{plain}" if apart else plain
    deeper = "".join(f"    {line}\n" for line in lines.splitlines())
    # Without the promise that iterations never meet: plain additions must not break it.
    return f"{indent}if (alone)\n{indent}{{\n{deeper}{indent}}}\n{indent}else\n{loop['head']}{body}"


def _lie_apart(place: str, body: str, variable: str) -> bool:
    """Does each iteration add to a place of its own, beside that of the one before?"""
    index = place[place.index("[") + 1 : -1]
    others = [term.strip() for term in index.split("+") if term.strip() != variable]
    varying = _varying(body, variable)
    return len(others) == len(index.split("+")) - 1 and not any(
        re.search(rf"\b{name}\b", term) for term in others for name in varying
    )


def _varying(body: str, variable: str) -> set[str]:
    """Return the names whose values differ between iterations."""
    varying = {variable}
    for name, value in _DEFINITION.findall(body):
        if any(re.search(rf"\b{known}\b", value) for known in varying):
            varying.add(name)
    return varying
