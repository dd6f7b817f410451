"""The kernels of a text, their launches, and the functions that kernels call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tree_sitter import Node

from kernel_smith.proposers.mutator.cpp.loops import function_name
from kernel_smith.proposers.mutator.cpp.names import Declared, Names, names_of
from kernel_smith.proposers.mutator.cpp.text import inside, walk
from kernel_smith.proposers.mutator.gpu.polynomial import Polynomial, number, polynomial
from kernel_smith.proposers.mutator.gpu.text import GpuText

# What makes threads wait for one another, or depends on which of them run side by side.
_BLOCK_WIDE = re.compile(r"\b(?:__syncthreads\w*|cooperative_groups|this_thread_block|__trap)\b")
_THREAD = re.compile(r"threadIdx|blockIdx")
_COLLECTIVE = re.compile(
    r"\b(?:__syncthreads\w*|__syncwarp|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__activemask"
    r"|__match\w*|__reduce\w*|__threadfence\w*|atomic\w+|cooperative_groups|this_thread_block"
    r"|sync|shfl\w*|barrier\w*|thread_rank|thread_index|group_index|asm|__asm__|printf|clock\w*|__trap|__nanosleep|goto|volatile)\b"
)


@dataclass(frozen=True, eq=False)
class Launch:
    """`kernel<<<grid, block, ...>>>(arguments)`, in `function`."""

    node: Node
    grid: Node
    block: Node
    arguments: tuple[Node, ...]
    function: Node


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel all of whose launches are known, each with the same constant number of threads."""

    text: GpuText
    node: Node
    name: str
    launches: tuple[Launch, ...]
    block: str
    threads: int

    @property
    def body(self) -> Node:
        body = self.node.child_by_field_name("body")
        assert body is not None
        return body

    @property
    def statements(self) -> list[Node]:
        return [child for child in self.body.named_children if child.type != "comment"]

    @property
    def width(self) -> str:
        """The number of threads as the kernel may write it."""
        known_before = f" {self.block} = " in self.text.data[: self.node.start_byte].decode()
        return self.block if known_before or self.block.isdigit() else "blockDim.x"

    @cached_property
    def names(self) -> Names:
        return names_of(self.text, self.node)

    @cached_property
    def parameters(self) -> list[Declared]:
        declared = self.names.declared_in(self.node)
        return [one for one in declared if one.node.type == "parameter_declaration"]

    def value(self, expression: str, at: Node) -> Polynomial | None:
        """Return an index expression with the locals that it is made of put in."""
        return local_value(self.text, self.node, expression, at, self.threads)


def kernels(text: GpuText) -> list[Kernel]:
    """Return the kernels that are understood. Others are left out."""
    return list(_kernels(text))


@lru_cache(maxsize=64)
def _kernels(text: GpuText) -> tuple[Kernel, ...]:
    functions = text.functions()
    names = [function_name(text, function) for function in functions]
    found = [
        _kernel(text, function, name)
        for function, name in zip(functions, names, strict=True)
        if is_kernel(text, function) and names.count(name) == 1
    ]
    return tuple(kernel for kernel in found if kernel is not None)


def is_kernel(text: GpuText, function: Node) -> bool:
    return "__global__" in _specifiers(text, function)


def runs_on_device(text: GpuText, function: Node) -> bool:
    return bool({"__global__", "__device__"} & _specifiers(text, function))


def is_shared(text: GpuText, declaration: Node) -> bool:
    return "__shared__" in _specifiers(text, declaration)


@lru_cache(maxsize=64)
def macros(text: GpuText) -> set[str]:
    """Names that the text defines as macros; what they hide is not read."""
    kinds = ("preproc_def", "preproc_function_def")
    named = [n.child_by_field_name("name") for n in walk(text.root) if n.type in kinds]
    return {text.of(node) for node in named if node is not None}


def constant(text: GpuText, word: str) -> int | None:
    """Return the value of a number literal, or of a constant that the text defines once."""
    if re.fullmatch(r"\d+[uUlL]*", word):
        return int(word.rstrip("uUlL"))
    declared = _declared(text).get(word, [])
    value = declared[0] if len(declared) == 1 else None
    return constant(text, value) if value is not None else None


@lru_cache(maxsize=64)
def _declared(text: GpuText) -> dict[str, list[str | None]]:
    """Return every name that the text declares anywhere; with its value where it is a constant."""
    found: dict[str, list[str | None]] = {}
    for one in names_of(text, text.root).declared_in(text.root):
        fixed = one.value is not None and one.scope.type == "translation_unit" and one.constant
        value = text.of(one.value) if fixed and one.value is not None else None
        found.setdefault(one.name, []).append(value)
    return found


def collective(text: GpuText, body: Node) -> bool:
    """Tell whether code makes threads depend on one another, also by a function that it calls."""
    hidden = _spreading(text, _COLLECTIVE) | macros(text)
    return _mentions(text, body, _COLLECTIVE, hidden)


def varying_functions(text: GpuText) -> set[str]:
    """Functions whose result may depend on the thread that calls them."""
    return _spreading(text, _THREAD)


def block_wide(text: GpuText) -> set[str]:
    """Functions in which all threads of a block meet."""
    return _spreading(text, _BLOCK_WIDE)


@lru_cache(maxsize=128)
def _spreading(text: GpuText, pattern: re.Pattern[str]) -> set[str]:
    """Functions whose text matches, and those that call them."""
    found: set[str] = set()
    while True:
        more = {
            function_name(text, function)
            for function in text.functions()
            if _mentions(text, function, pattern, found)
        }
        if more <= found:
            return found
        found |= more


def _mentions(text: GpuText, node: Node, pattern: re.Pattern[str], words: set[str]) -> bool:
    for leaf in walk(node):
        if leaf.child_count == 0 and leaf.type != "comment":
            word = text.of(leaf)
            if word in words or pattern.fullmatch(word):
                return True
    return False


def local_value(
    text: GpuText, function: Node, expression: str, at: Node, threads: int
) -> Polynomial | None:
    """Return a polynomial of parameters and built-in variables."""
    names = names_of(text, function)

    def value_of(word: str) -> Polynomial | None:
        if word == "blockDim_x":
            return number(threads)
        declared = names.lookup(word, at)
        if declared is None:
            known = constant(text, word)
            return None if known is None else number(known)
        fixed = declared.kind == "plain" and word not in names.assigned
        if declared.value is None or not fixed or inside(at, declared.node):
            return None
        return local_value(text, function, text.of(declared.value), declared.node, threads)

    return polynomial(expression, value_of)


def _kernel(text: GpuText, function: Node, name: str) -> Kernel | None:
    uses = [n for n in walk(text.root) if n.type == "identifier" and text.of(n) == name]
    launches = [launch for use in uses if (launch := _launch(text, use)) is not None]
    all_known = len(launches) == len(uses) - 1
    in_macro = any(re.search(rf"\b{name}\b", text.of(n)) for n in _macro_texts(text))
    blocks = {text.of(launch.block) for launch in launches}
    if not all_known or in_macro or len(blocks) != 1:
        return None
    block = blocks.pop()
    threads = constant(text, block)
    return Kernel(text, function, name, tuple(launches), block, threads) if threads else None


def _launch(text: GpuText, use: Node) -> Launch | None:
    callee = (
        use.parent if use.parent is not None and use.parent.type == "template_function" else use
    )
    inner = callee.parent
    if inner is None or inner.type != "call_expression":
        return None
    outer, shape = inner.parent, inner.child_by_field_name("arguments")
    if outer is None or outer.type != "call_expression" or shape is None:
        return None
    arguments = outer.child_by_field_name("arguments")
    function: Node | None = outer
    while function is not None and function.type != "function_definition":
        function = function.parent
    if "<<<" not in text.of(inner) or arguments is None or function is None:
        return None
    if len(shape.named_children) < 2:
        return None
    grid, block = shape.named_children[:2]
    return Launch(outer, grid, block, tuple(arguments.named_children), function)


def _macro_texts(text: GpuText) -> Iterator[Node]:
    for node in walk(text.root):
        if node.type in ("preproc_def", "preproc_function_def"):
            yield node


def _specifiers(text: GpuText, declaration: Node) -> set[str]:
    """Return the words ahead of a type, such as `__global__`; the tree knows only where they
    begin."""
    found = [c for c in declaration.named_children if c.type == "storage_class_specifier"]
    rest = [text.data[c.start_byte :].decode() for c in found]
    return {re.split(r"\W", words, maxsplit=1)[0] for words in rest}
