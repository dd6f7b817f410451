"""Turn CUDA, MACA or HIP text into C++ that the headers of the emulation understand.

Four things are no C++ and cannot be made so by macros: launches, dynamic shared memory, qualifiers
of lambdas, and inline assembly. They are replaced in place. No line break is added or removed, so
that the compiler's messages hold for the original text.

Unlike `kernel_smith.inline.tokens`, the scanner here keeps positions and looks into macros, since
launches are often written in one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<comment>   //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<raw>       (?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)" )
    | (?P<string>    (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
    | (?P<character> (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
    | (?P<number>    \.?\d(?: [eEpP][+-] | '?\w | \. )* )
    | (?P<word>      [A-Za-z_]\w* )
    | (?P<splice>    \\\r?\n )
    | (?P<mark>      :: | -> | \S )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_]\w*\Z")
_OPENER = {")": "(", "]": "[", "}": "{"}
_CLOSER = {opener: closer for closer, opener in _OPENER.items()}

_SPECIFIERS = frozenset({"extern", "static", "const", "volatile", "__shared__", "__device__"})
_ALIGNMENTS = frozenset({"alignas", "__align__", "__attribute__"})
_LAMBDA_QUALIFIERS = frozenset({"__device__", "__host__", "__forceinline__"})
_ASSEMBLY = frozenset({"asm", "__asm__", "__asm"})
_ABSENT_BUILTINS = ("__builtin_mxc_", "__builtin_amdgcn_", "__nvvm_")

# A refusal is an expression, so that it can stand wherever what it replaces stood.
_REFUSAL = '([]{{ static_assert(false, "not emulated on the CPU: {what}"); }}(), {value})'


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str


def rewrite(source: str) -> str:
    """Return the same program as C++ for the emulation, with the same lines."""
    tokens = _scan(source)
    edits: list[_Edit] = []
    for index, token in enumerate(tokens):
        if token.text == "<" and _adjacent(tokens, index, "<"):
            edits += _launch(tokens, index)
        elif token.text == "__shared__":
            edits += _shared(tokens, index)
        elif token.text in _ASSEMBLY:
            edits += _assembly(tokens, index)
        elif token.text.startswith(_ABSENT_BUILTINS):
            what = f"the compiler's builtin {token.text}"
            text = _REFUSAL.format(what=what, value="ks_simt::absent")
            edits.append(_Edit(token.start, token.end, text))
        elif token.text in _LAMBDA_QUALIFIERS and _after_capture(tokens, index):
            edits.append(_Edit(token.start, token.end, ""))
        elif token.text == "__noinline__" and _text(tokens, index - 1) not in ("(", ","):
            # No macro: the standard library writes __attribute__((__noinline__)).
            edits.append(_Edit(token.start, token.end, "__attribute__((noinline))"))
    return _apply(source, edits)


def _scan(source: str) -> list[_Token]:
    return [
        _Token(match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(source)
        if match["comment"] is None and match["splice"] is None
    ]


def _apply(source: str, edits: Sequence[_Edit]) -> str:
    """Return the text with the edits made; the line breaks in what they replace stay."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < position:  # inside of something that was replaced as a whole
            continue
        breaks = re.findall(r"\\?\r?\n", source[edit.start : edit.end])
        pieces += [source[position : edit.start], edit.text, *breaks]
        position = edit.end
    return "".join([*pieces, source[position:]])


def _text(tokens: Sequence[_Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _adjacent(tokens: Sequence[_Token], index: int, mark: str) -> bool:
    """Tell whether three of these marks stand here without anything between them."""
    three = tokens[index : index + 3]
    if len(three) < 3 or any(token.text != mark for token in three):
        return False
    return three[2].start == three[0].start + 2


def _launch(tokens: Sequence[_Token], index: int) -> list[_Edit]:
    """`name<<<shape>>>(arguments)` as `launcher(calls name).shaped(shape)(arguments)`.

    The arguments are evaluated once, where they stand, and every thread gets a copy.
    """
    first = _callee(tokens, index)
    end = _end_of_shape(tokens, index + 3)
    if first is None or end is None:
        return []
    start = tokens[first].start
    arguments = range(end + 4, _closing(tokens, end + 3))
    return [
        _Edit(start, start, "ks_simt::launcher([&](auto&... ks_arguments) { "),
        _Edit(tokens[index].start, tokens[index + 2].end, "(ks_arguments...); }).shaped("),
        _Edit(tokens[end].start, tokens[end + 2].end, ")"),
        # As the argument of a template, NULL would be a number.
        *(
            _Edit(tokens[at].start, tokens[at].end, "nullptr")
            for at in arguments
            if tokens[at].text == "NULL"
        ),
    ]


def _end_of_shape(tokens: Sequence[_Token], index: int) -> int | None:
    """Tell where the `>>>` stands that ends the shape of a launch."""
    while index < len(tokens):
        text = tokens[index].text
        if text == ">" and _adjacent(tokens, index, ">") and _text(tokens, index + 3) == "(":
            return index
        if text in _CLOSER:
            index = _closing(tokens, index)
        elif text in _OPENER or text == ";":
            return None
        index += 1
    return None


def _callee(tokens: Sequence[_Token], index: int) -> int | None:
    """Return the first token of the kernel's name, which ends before `index`: `a::b<c, d>`."""
    first = None
    while True:
        index -= 1
        if _text(tokens, index) == ")":
            return _opening(tokens, index)
        while _text(tokens, index) in (">", "]"):
            first = _opening(tokens, index)
            if first is None:
                return None
            index = first - 1
        if _WORD.match(_text(tokens, index)) and _text(tokens, index) != "return":
            first = index
            index -= 1
        if _text(tokens, index) == "template":
            index -= 1
        if _text(tokens, index) not in ("::", ".", "->"):
            return first
        first = index


def _closing(tokens: Sequence[_Token], index: int) -> int:
    """Return the bracket that closes the one at `index`; the last token where none does."""
    depth = 0
    for at in range(index, len(tokens)):
        depth += (tokens[at].text in _CLOSER) - (tokens[at].text in _OPENER)
        if depth == 0:
            return at
    return len(tokens) - 1


def _opening(tokens: Sequence[_Token], index: int) -> int | None:
    """Return the bracket that opens what the one at `index` closes."""
    angles = tokens[index].text == ">"
    depth = 0
    while index >= 0:
        text = tokens[index].text
        if angles and text in _OPENER:
            inner = _opening(tokens, index)
            if inner is None:
                return None
            index = inner - 1
            continue
        closers, openers = (">", "<") if angles else (")]}", "([{")
        depth += (text in closers) - (text in openers)
        if depth == 0:
            return index
        if angles and text in ";{":
            return None
        index -= 1
    return None


def _shared(tokens: Sequence[_Token], index: int) -> list[_Edit]:
    """Edits of a declaration of shared memory; the header's macro does the rest."""
    first = index
    while _text(tokens, first - 1) in _SPECIFIERS:
        first -= 1
    last = index
    while _text(tokens, last) not in (";", "{", "}", "") and last < index + 200:
        last += 1
    edits: list[_Edit] = []
    dynamic = any(tokens[at].text == "extern" for at in range(first, last))
    for at in range(first, last):
        token = tokens[at]
        if token.text == "static" or (dynamic and token.text in ("extern", "__shared__")):
            edits.append(_Edit(token.start, token.end, ""))
        elif dynamic and token.text in _ALIGNMENTS and _text(tokens, at + 1) == "(":
            # The memory is aligned for everything, and a pointer to it need not be.
            edits.append(_Edit(token.start, tokens[_closing(tokens, at + 1)].end, ""))
        elif token.text == "alignas":
            edits.append(_Edit(token.start, token.end, "__align__"))
    return edits + (_dynamic_name(tokens, index, last) if dynamic else [])


def _dynamic_name(tokens: Sequence[_Token], index: int, last: int) -> list[_Edit]:
    """`name[]` or `name[][8]` as a pointer to the block's dynamic shared memory."""
    for at in range(index, last - 2):
        if tokens[at + 1].text == "[" and tokens[at + 2].text == "]":
            end = at + 2
            while _text(tokens, end + 1) == "[":
                end = _closing(tokens, end + 1)
            opener, closer = ("(* const ", ")") if end > at + 2 else ("* const ", "")
            return [
                _Edit(tokens[at].start, tokens[at].start, opener),
                _Edit(tokens[at + 1].start, tokens[at + 2].end, closer),
                _Edit(tokens[end].end, tokens[end].end, " = ks_simt::dynamic_shared"),
            ]
    return []


def _assembly(tokens: Sequence[_Token], index: int) -> list[_Edit]:
    at = index + 1
    while _text(tokens, at) in ("volatile", "__volatile__", "goto", "inline"):
        at += 1
    if _text(tokens, at) != "(":
        return []
    end = _closing(tokens, at)
    text = _REFUSAL.format(what="inline assembly (asm)", value="void()")
    return [_Edit(tokens[index].start, tokens[end].end, text)]


def _after_capture(tokens: Sequence[_Token], index: int) -> bool:
    """Tell whether a qualifier follows the capture of a lambda: `[=] __device__ (int i) {...}`."""
    while _text(tokens, index) in _LAMBDA_QUALIFIERS:
        index -= 1
    return _text(tokens, index) == "]"
