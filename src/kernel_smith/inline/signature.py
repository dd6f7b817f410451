"""The `extern "C"` functions of a C++ source, read from its text.

`prototypes` gives one `Prototype` per function that the text defines with C linkage. Functions that
are only declared are left out: the library would not hold them, and so are functions that run on a
GPU. A type that cannot be passed by value is noted, not refused, because nobody may ever call that
function from Python. A last parameter that is a stream is no parameter for the caller.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence

from kernel_smith.inline.prototype import CType, Parameter, Prototype
from kernel_smith.inline.tokens import closing, is_word, split_commas, tokens

# The C standard leaves the sign of plain char to the platform.
_CHAR = ctypes.c_byte if os.uname().machine in ("x86_64", "i686") else ctypes.c_ubyte

_NAMED_TYPES: dict[str, CType] = {
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "int8_t": ctypes.c_int8,
    "int16_t": ctypes.c_int16,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "ptrdiff_t": ctypes.c_ssize_t,
    # Enumerations of the GPU runtimes.
    "cudaError_t": ctypes.c_int,
    "mcError_t": ctypes.c_int,
    "hipError_t": ctypes.c_int,
}
_STREAM_TYPES = frozenset({"cudaStream_t", "mcStream_t", "hipStream_t"})

# How the words of a built-in integer type name it, whatever their order: (signed, unsigned).
_INTEGER_TYPES: dict[tuple[str, ...], tuple[CType, CType]] = {
    ("short",): (ctypes.c_short, ctypes.c_ushort),
    (): (ctypes.c_int, ctypes.c_uint),
    ("long",): (ctypes.c_long, ctypes.c_ulong),
    ("long", "long"): (ctypes.c_longlong, ctypes.c_ulonglong),
}
_INTEGER_WORDS = frozenset({"char", "short", "int", "long", "signed", "unsigned"})

_QUALIFIERS = frozenset(
    {"const", "volatile", "restrict", "__restrict", "__restrict__", "register", "struct", "class"}
)
_SPECIFIERS = frozenset(
    {"extern", "inline", "__inline", "__inline__", "constexpr", "typename"}
    | {"__host__", "__device__", "__global__", "__forceinline__", "__noinline__"}
)
_ATTRIBUTES = frozenset(
    {"__attribute__", "__attribute", "__declspec", "alignas", "__extension__"}
    | {"__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__block_size__"}
)
_NOT_NAMES = frozenset({"noexcept", "decltype", "void", *_NAMED_TYPES, *_INTEGER_WORDS})

Aliases = dict[str, list[str]]


def prototypes(source: str) -> dict[str, Prototype]:
    """Return every function that the text defines with C linkage, by name."""
    reader = _Reader()
    reader.read_scope(tokens(source), c_linkage=False)
    return {name: found for name, found in reader.found.items() if name in reader.defined}


def declarations(text: str) -> dict[str, Prototype]:
    """Return every function that a text declares, as C does, by name."""
    reader = _Reader()
    reader.read_scope(tokens(text), c_linkage=True)
    return reader.found


class _Reader:
    """Walks the declarations of a text; function bodies and classes are stepped over."""

    def __init__(self) -> None:
        self.found: dict[str, Prototype] = {}
        self.defined: set[str] = set()
        self.aliases: Aliases = {}

    def read_scope(self, items: Sequence[str], *, c_linkage: bool) -> None:
        index = 0
        while index < len(items):
            index = self._read_one(items, index, c_linkage=c_linkage)

    def _read_one(self, items: Sequence[str], index: int, *, c_linkage: bool) -> int:
        """Read what begins at `index`, and say where the next thing begins."""
        if items[index] == "extern" and _is_string(items, index + 1):
            c_linkage = items[index + 1] == '"C"'
            index += 2
            if index < len(items) and items[index] == "{":
                end = closing(items, index)
                self.read_scope(items[index + 1 : end], c_linkage=c_linkage)
                return end + 1
        elif items[index] in ("namespace", "inline") and (body := _namespace_body(items, index)):
            end = closing(items, body)
            # An unnamed namespace exports nothing.
            if items[body - 1] != "namespace":
                self.read_scope(items[body + 1 : end], c_linkage=c_linkage)
            return end + 1
        return self._read_declaration(items, index, c_linkage=c_linkage)

    def _read_declaration(self, items: Sequence[str], start: int, *, c_linkage: bool) -> int:
        """Return one declaration, to its semicolon or to the end of its function body."""
        collected: list[str] = []
        index = start
        while index < len(items) and items[index] != ";":
            token = items[index]
            if token == "extern" and _is_string(items, index + 1) and index > start:
                return index  # what came before was a macro without a semicolon
            end = closing(items, index) if token in ("(", "[", "{") else index
            if token != "{":
                collected.extend(items[index : end + 1])
            elif _takes_body(head := _without_attributes(collected)):
                self._note_function(head, c_linkage=c_linkage, has_body=True)
                return end + 1
            index = end + 1
        head = _without_attributes(collected)
        self._note_function(head, c_linkage=c_linkage, has_body=False)
        self._note_alias(head)
        return index + 1

    def _note_function(self, head: list[str], *, c_linkage: bool, has_body: bool) -> None:
        opening = _parameter_list(head)
        if opening == 0 or "static" in head[:opening] or _runs_on_gpu(head[:opening]):
            return
        name = head[opening - 1]
        if has_body:
            self.defined.add(name)
        # A definition repeats its prototype, and more often names the parameters.
        if c_linkage or (has_body and name in self.found):
            self.found[name] = _prototype(head, opening, self.aliases)

    def _note_alias(self, head: list[str]) -> None:
        """`using name = type;` and `typedef type name;`"""
        if head[:1] == ["using"] and head[2:3] == ["="]:
            self.aliases[head[1]] = _resolved(head[3:], self.aliases)
        elif head[:1] == ["typedef"] and len(head) > 2 and "(" not in head and "[" not in head:
            self.aliases[head[-1]] = _resolved(head[1:-1], self.aliases)


def _is_string(items: Sequence[str], index: int) -> bool:
    return index < len(items) and items[index].startswith('"')


def _namespace_body(items: Sequence[str], index: int) -> int:
    """Index of the brace that opens a namespace which begins at `index`; 0 if none does."""
    index += items[index] == "inline"
    if items[index : index + 1] != ["namespace"]:
        return 0
    index += 1
    while index < len(items) and (is_word(items[index]) or items[index] == "::"):
        index += 1
    return index if items[index : index + 1] == ["{"] else 0


def _without_attributes(items: Sequence[str]) -> list[str]:
    result: list[str] = []
    index = 0
    while index < len(items):
        if items[index] in _ATTRIBUTES:
            index += 1
            if items[index : index + 1] == ["("]:
                index = closing(items, index) + 1
        elif list(items[index : index + 2]) == ["[", "["]:
            index = closing(items, index) + 1
        else:
            result.append(items[index])
            index += 1
    return result


def _takes_body(head: Sequence[str]) -> bool:
    """Tell whether a brace after these tokens opens a function's body, which ends the
    declaration."""
    if not head or "operator" in head:
        return True
    return "(" in head and "=" not in head[: head.index("(")]


def _parameter_list(head: Sequence[str]) -> int:
    """Index of the parenthesis that opens a plain function's parameters; 0 for anything else."""
    if head[:1] in (["using"], ["typedef"], ["template"]) or "operator" in head:
        return 0
    index = 0
    while index < len(head) and head[index] != "(":
        if head[index] == "=":
            return 0
        index = closing(head, index) + 1 if head[index] == "<" else index + 1
    if not 2 <= index < len(head) or head[index - 2] == "::":
        return 0
    name = head[index - 1]
    return index if is_word(name) and name not in _NOT_NAMES else 0


def _runs_on_gpu(specifiers: Sequence[str]) -> bool:
    on_both = "__host__" in specifiers
    return "__global__" in specifiers or ("__device__" in specifiers and not on_both)


def _prototype(head: list[str], opening: int, aliases: Aliases) -> Prototype:
    end = closing(head, opening)
    unsupported: list[str] = []
    parts = split_commas(head[opening + 1 : end])
    takes_stream = bool(parts) and _is_stream(_resolved(parts[-1], aliases))
    parts = parts[:-1] if takes_stream else parts
    parameters = []
    for part in [] if parts == [["void"]] else parts:
        part = part[: part.index("=")] if "=" in part else part
        parameters.append(_parameter(part, aliases))
        if parameters[-1].ctype is None:
            unsupported.append(f"parameter `{_spelled(part)}`")
    result = [token for token in head[: opening - 1] if token not in _SPECIFIERS]
    if "->" in head[end:]:
        result = head[head.index("->", end) + 1 :]
    returns = None
    if _without_qualifiers(_resolved(result, aliases)) != ["void"]:
        returns = _scalar(_resolved(result, aliases))
        if returns is None:
            unsupported.append(f"return type `{_spelled(result)}`")
    text = _spelled([*result, head[opening - 1], *head[opening : end + 1]])
    return Prototype(
        head[opening - 1], returns, tuple(parameters), text, tuple(unsupported), takes_stream
    )


def _is_stream(items: Sequence[str]) -> bool:
    """Tell whether a parameter is a stream by value, with a name or without, with a default or
    not."""
    items = items[: list(items).index("=")] if "=" in items else items
    words = [token for token in _without_qualifiers(items) if token != "::"]
    return words[:1] != [] and words[0] in _STREAM_TYPES and all(map(is_word, words[1:]))


def _parameter(items: list[str], aliases: Aliases) -> Parameter:
    items = [token for token in items if token not in _QUALIFIERS]
    name = _declared_name(items)
    declared = _outside_angles(_resolved(items, aliases))
    if "&" in declared or "..." in declared:
        return Parameter(name, None, is_pointer=False)
    if "*" in declared or "[" in declared:
        points_to, elements = _target(items[:-1] if items[-1:] == [name] else items, aliases)
        return Parameter(name, ctypes.c_void_p, True, points_to, elements)
    scalar = _scalar(_resolved(items, aliases))
    if scalar is not None:
        return Parameter("", scalar, is_pointer=False)
    return Parameter(name, _scalar(_resolved(items[:-1], aliases)), is_pointer=False)


def _target(items: list[str], aliases: Aliases) -> tuple[str, int]:
    """Return what a pointer or array points to, and how many of it an array asks for.

    No type where it is itself a pointer or an array, or an alias of one.
    """
    marks = [index for index, token in enumerate(items) if token in ("*", "[", "(")]
    words = _without_qualifiers(_resolved(items[: marks[0]] if marks else items, aliases))
    declarator = items[marks[0] :] if marks else []
    if words[-1:] == ["*"] and not {"*", "[", "("} & {*declarator, *words[:-1]}:
        words = words[:-1]  # an alias of a pointer
    elif "(" in declarator or declarator.count("*") + declarator.count("[") != 1:
        return "", 0
    elif declarator[0] == "[" and is_word(words[-1]) and _scalar(words) is None:
        words = words[:-1]  # the parameter's name
    size = "".join(declarator[1:2])
    plain = all(is_word(word) or word == "::" for word in words)
    return _type_name(words) if plain else "", int(size) if size.isdecimal() else 0


def _type_name(words: Sequence[str]) -> str:
    """Return a type's words in one order: `unsigned long` for `long unsigned int`."""
    if not _INTEGER_WORDS.issuperset(words):
        return "".join(words).removeprefix("::")
    size = [word for word in words if word in ("short", "long", "char")]
    sign = [word for word in words if word == "unsigned" or (word == "signed" and "char" in words)]
    return " ".join([*sign, *size]) or "int"


def _declared_name(items: Sequence[str]) -> str:
    """Return the name in a declarator such as `float* x`, `x[4]` or `(*x)(int)`; empty if it has
    none."""
    if "(" in items:
        items = items[items.index("(") + 1 : closing(items, items.index("("))]
    if "[" in items:
        items = items[: items.index("[")]
    named = len(items) > 1 and is_word(items[-1]) and items[-2] != "::"
    return items[-1] if named and _scalar(items) is None else ""


def _outside_angles(items: Sequence[str]) -> list[str]:
    """Return the tokens that are not template arguments: `vector<float*>` is no pointer."""
    result: list[str] = []
    index = 0
    while index < len(items):
        result.append(items[index])
        index = closing(items, index) + 1 if items[index] == "<" else index + 1
    return result


def _scalar(items: Sequence[str]) -> CType | None:
    """Return the ctypes class of a scalar type's tokens, if they are one."""
    words = _without_qualifiers(items)
    if words[:1] == ["::"]:
        words = words[1:]
    if words[:2] == ["std", "::"]:
        words = words[2:]
    if len(words) == 1 and words[0] in _NAMED_TYPES:
        return _NAMED_TYPES[words[0]]
    if not words or not _INTEGER_WORDS.issuperset(words):
        return None
    if "char" in words:
        named = {"signed": ctypes.c_byte, "unsigned": ctypes.c_ubyte}
        rest = [word for word in words if word != "char"]
        return named.get(rest[0]) if len(rest) == 1 else None if rest else _CHAR
    size = tuple(word for word in words if word in ("short", "long"))
    pair = _INTEGER_TYPES.get(size)
    return pair["unsigned" in words] if pair else None


def _without_qualifiers(items: Sequence[str]) -> list[str]:
    return [token for token in items if token not in _QUALIFIERS]


def _resolved(items: Sequence[str], aliases: Aliases) -> list[str]:
    return [part for token in items for part in aliases.get(token, [token])]


def _spelled(items: Sequence[str]) -> str:
    """Tokens as a person would write them: `const float* x`."""
    text = " ".join(items)
    text = re.sub(r" ([*&,)\]<>\[]|\((?! [*&]))", r"\1", text)
    text = re.sub(r"([(\[<]|\( ?[*&]) ", r"\1", text)
    return re.sub(r" ?:: ?", "::", text)
