"""What the preprocessor leaves out of C++ text on the machine where a program was judged.

Only the macros by which kernels choose their instructions are known here, and only what the record
of an evaluation says about that machine. What a condition depends on beside them is not, and then
all of its branches count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernel_smith.records import Evaluation

Defined = Mapping[str, bool]
"""Whether the compiler defines a macro, as far as is known."""
ANY_BRANCH: Defined = {}

# Macro -> what an evaluation's environment calls it, by machine.
_INSTRUCTIONS = {
    "x86_64": {
        "__SSE4_2__": "sse4_2",
        "__AVX__": "avx",
        "__FMA__": "fma",
        "__AVX2__": "avx2",
        "__AVX512F__": "avx512f",
        "__AVX512BW__": "avx512bw",
        "__AVX512VL__": "avx512vl",
    },
    "aarch64": {
        "__ARM_NEON": "asimd",
        "__ARM_NEON__": "asimd",
        "__ARM_FEATURE_SVE": "sve",
    },
}
_MACHINES = {"x86_64": ("__x86_64__",), "aarch64": ("__aarch64__",)}
# What has the compiler define others: flags, and pragmas but for this one.
_OTHER_TARGET = re.compile(
    r"""["']-m(?!prefer-vector-width)|\bpragma\s+GCC\s+target\b(?!\s*\(\s*"prefer-vector-width)"""
)
_REDEFINED = re.compile(r"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.M)
_LINE = re.compile(r"(?:\\\r?\n|[^\n])*(?:\n|\Z)")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b(.*)", re.S)
_TOKEN = re.compile(r"\s*(?:defined\s*\(\s*(\w+)\s*\)|defined\s+(\w+)|(\w+|&&|\|\||[!()]|\S))")


def macros_of(evaluation: Evaluation, source: str) -> Defined:
    """Tell what the compiler defined where a program was judged."""
    where = evaluation.environment
    if where is None or not where.instruction_set or _OTHER_TARGET.search(source):
        return ANY_BRANCH
    vectors = frozenset(where.instruction_set.split())
    known = {
        name: machine == where.machine and word in vectors
        for machine, names in _INSTRUCTIONS.items()
        for name, word in names.items()
    }
    known |= {name: machine == where.machine for machine, (name,) in _MACHINES.items()}
    return known | ({"__clang__": "clang" in where.compiler} if where.compiler else {})


@dataclass
class _Condition:
    """From `#if` to `#endif`. None: that is not known."""

    taken: bool | None
    """Is the branch at hand compiled?"""
    decided: bool | None
    """Was it, or one before it?"""

    def turn(self, holds: bool | None) -> None:
        """Go on to the next branch, which is compiled if that holds and none before it was."""
        if self.decided:
            self.taken = False
        elif self.decided is False:
            self.taken = self.decided = holds
        else:
            self.taken = False if holds is False else None
            self.decided = True if holds else None


def without_dead_branches(code: str, defined: Defined) -> str:
    """Blank the lines that are not compiled, at equal length. `code` has no comments."""
    own = set(_REDEFINED.findall(code))
    known = {name: value for name, value in defined.items() if name not in own}
    open_ones: list[_Condition] = []
    lines = []
    for found in _LINE.finditer(code):
        line = found.group()
        directive = _DIRECTIVE.match(line)
        if directive is None:
            dead = any(each.taken is False for each in open_ones)
            lines.append(re.sub(r"[^\n]", " ", line) if dead else line)
            continue
        lines.append(line)
        _follow(directive[1], directive[2].replace("\\", " "), known, open_ones)
    return "".join(lines)


def _follow(word: str, condition: str, known: Defined, open_ones: list[_Condition]) -> None:
    if word in ("if", "ifdef", "ifndef"):
        holds = _holds(condition, known) if word == "if" else known.get(condition.strip())
        if word == "ifndef":
            holds = _negated(holds)
        open_ones.append(_Condition(holds, holds))
    elif not open_ones:
        return
    elif word == "endif":
        open_ones.pop()
    else:
        open_ones[-1].turn(_holds(condition, known) if word == "elif" else True)


def _holds(condition: str, known: Defined) -> bool | None:
    """Evaluate a condition of `defined`, names, `!`, `&&`, `||` and brackets; None for others."""
    tokens: list[bool | str | None] = []
    for bracketed, plain, token in _TOKEN.findall(condition.rstrip()):
        name = bracketed or plain or token
        if name in ("!", "(", ")", "&&", "||"):
            tokens.append(name)
        elif name in ("0", "1"):
            tokens.append(name == "1")
        elif name.isidentifier():
            tokens.append(known.get(name))
        else:
            return None
    value = _any(tokens)
    return None if tokens else value


def _any(tokens: list[bool | str | None]) -> bool | None:
    return _joined(tokens, "||", _all, decisive=True)


def _all(tokens: list[bool | str | None]) -> bool | None:
    return _joined(tokens, "&&", _one, decisive=False)


def _joined(
    tokens: list[bool | str | None],
    sign: str,
    read: Callable[[list[bool | str | None]], bool | None],
    *,
    decisive: bool,
) -> bool | None:
    values = [read(tokens)]
    while tokens and tokens[0] == sign:
        del tokens[0]
        values.append(read(tokens))
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _one(tokens: list[bool | str | None]) -> bool | None:
    token = tokens.pop(0) if tokens else None
    if token == "!":
        return _negated(_one(tokens))
    if token == "(":
        value = _any(tokens)
        if tokens and tokens[0] == ")":
            del tokens[0]
            return value
        return None
    return None if isinstance(token, str) else token


def _negated(holds: bool | None) -> bool | None:
    return None if holds is None else not holds
