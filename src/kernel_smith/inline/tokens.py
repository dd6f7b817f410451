"""C++ text as tokens, after a small preprocessor.

Comments are dropped, macros that the text itself defines are expanded, and of conditional code the
first branch is kept. Headers are not read. This is enough to find the functions that a kernel
source defines, including those that a macro writes; it is no substitute for the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Expansion stops growing here, so that nested macros cannot exhaust memory.
_MOST_TOKENS = 200_000

_TOKEN = re.compile(
    r"""
      (?P<comment>   //[^\n]* | /\*.*?(?:\*/|\Z) )
    | (?P<directive> ^[ \t]*\#(?: /\*.*?\*/ | (?!//)[^\n] )* )
    | (?P<raw>       (?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)" )
    | (?P<string>    (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
    | (?P<character> (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
    | (?P<number>    \.?\d(?: [eEpP][+-] | '?\w | \. )* )
    | (?P<word>      [A-Za-z_]\w* )
    | (?P<mark>      :: | -> | \.\.\. | \#\# | \S )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_DEFINE = re.compile(
    r"define\s+(?P<name>[A-Za-z_]\w*)(?P<parameters>\([^()]*\))?(?P<body>.*)", re.S
)
_UNDEF = re.compile(r"undef\s+(?P<name>[A-Za-z_]\w*)")
_WORD = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True)
class _Macro:
    parameters: tuple[str, ...] | None
    body: tuple[str, ...]


def tokens(source: str) -> list[str]:
    """Return the tokens of a C++ text. String and character literals are one token each."""
    text = source.replace("\r\n", "\n").replace("\\\n", "")
    macros: dict[str, _Macro] = {}
    result: list[str] = []
    for item in _kept_branches(text):
        if isinstance(item, str):
            _note_macro(item, macros)
        else:
            _expand(item, macros, frozenset(), result)
    return result


def is_word(token: str) -> bool:
    """Tell whether the token is an identifier or a keyword."""
    return _WORD.match(token) is not None


def closing(items: Sequence[str], start: int) -> int:
    """Index of the bracket that closes the one at `start`; the end where nothing does."""
    opener = items[start]
    closer = {"(": ")", "[": "]", "{": "}", "<": ">"}[opener]
    depth = 0
    for index in range(start, len(items)):
        if items[index] == opener:
            depth += 1
        elif items[index] == closer:
            depth -= 1
            if depth == 0:
                return index
    return len(items)


def split_commas(items: Sequence[str]) -> list[list[str]]:
    """Split at the commas that stand outside of every bracket; nothing gives no part."""
    parts: list[list[str]] = [[]]
    depth = 0
    for item in items:
        if item == "," and depth == 0:
            parts.append([])
            continue
        depth += (item in "([{<") - (item in ")]}>") if len(item) == 1 else 0
        parts[-1].append(item)
    return parts if items else []


def _kept_branches(text: str) -> Iterator[str | list[str]]:
    """Directives other than conditionals, as text, and the runs of tokens between them."""
    run: list[str] = []
    # One entry per open conditional: was a branch kept already, and is this one kept?
    open_branches: list[tuple[bool, bool]] = []
    for match in _TOKEN.finditer(text):
        kept = all(keep for _, keep in open_branches)
        if match.lastgroup == "directive":
            directive = match.group().strip().removeprefix("#").strip()
            if not _follow_conditional(directive, open_branches) and kept:
                yield run
                yield directive
                run = []
        elif match["comment"] is None and kept:
            run.append(match.group())
    yield run


def _follow_conditional(directive: str, open_branches: list[tuple[bool, bool]]) -> bool:
    """Update the stack for #if, #else and their kin; False for any other directive."""
    word, _, rest = directive.partition(" ")
    if word in ("if", "ifdef", "ifndef"):
        keep = not (word == "if" and rest.strip() == "0")
        open_branches.append((keep, keep))
    elif word in ("else", "elif", "elifdef", "elifndef"):
        if open_branches:
            had_one, _ = open_branches.pop()
            open_branches.append((True, not had_one))
    elif word == "endif":
        if open_branches:
            open_branches.pop()
    else:
        return False
    return True


def _note_macro(directive: str, macros: dict[str, _Macro]) -> None:
    if match := _DEFINE.match(directive):
        listed = match["parameters"]
        parameters = None
        if listed is not None:
            names = [name.strip() for name in listed[1:-1].split(",") if name.strip()]
            parameters = tuple("__VA_ARGS__" if name == "..." else name for name in names)
        body = tuple(m.group() for m in _TOKEN.finditer(match["body"]) if m["comment"] is None)
        macros[match["name"]] = _Macro(parameters, body)
    elif match := _UNDEF.match(directive):
        macros.pop(match["name"], None)


def _expand(
    items: Sequence[str], macros: dict[str, _Macro], active: frozenset[str], result: list[str]
) -> None:
    """Append the items to the result, macros replaced. A macro does not expand in itself."""
    index = 0
    while index < len(items):
        name = items[index]
        index += 1
        macro = macros.get(name) if name not in active else None
        if macro is None or len(result) > _MOST_TOKENS:
            result.append(name)
        elif macro.parameters is None:
            _expand(_pasted(macro.body), macros, active | {name}, result)
        elif index < len(items) and items[index] == "(":
            end = closing(items, index)
            arguments = _arguments(items[index + 1 : end], macro.parameters)
            _expand(_pasted(_substituted(macro.body, arguments)), macros, active | {name}, result)
            index = end + 1
        else:
            result.append(name)


def _arguments(items: Sequence[str], parameters: tuple[str, ...]) -> dict[str, list[str]]:
    """Return what each parameter of a macro stands for; the last one takes all that is left."""
    parts = split_commas(items)
    values: dict[str, list[str]] = {name: [] for name in parameters}
    for name, part in zip(parameters, parts, strict=False):
        values[name] = part
    if parameters and parameters[-1] == "__VA_ARGS__":
        rest = parts[len(parameters) - 1 :]
        values["__VA_ARGS__"] = [token for part in rest for token in (",", *part)][1:]
    return values


def _substituted(body: Sequence[str], arguments: dict[str, list[str]]) -> list[str]:
    result: list[str] = []
    for token in body:
        if token in arguments and result and result[-1] == "#":
            result[-1] = '""'
        else:
            result.extend(arguments.get(token, [token]))
    return result


def _pasted(items: Sequence[str]) -> list[str]:
    """Join the neighbours of each ## into one token."""
    result: list[str] = []
    paste = False
    for token in items:
        if token == "##":
            paste = bool(result)
        elif paste:
            result[-1] += token
            paste = False
        else:
            result.append(token)
    return result
