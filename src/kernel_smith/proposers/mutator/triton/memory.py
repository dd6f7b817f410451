"""Edits of how a kernel loads, stores and divides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.proposers.mutator.edit import Site
from kernel_smith.proposers.mutator.triton.text import TritonText, calls, triton_edit


def _places(text: TritonText, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of `tl.load` or `tl.store`, with what they load or store."""
    for kernel in text.kernels:
        for number, call in enumerate(calls(kernel, function), start=1):
            target = call.args[0] if call.args else call
            what = " ".join(text.of(target).split())[:40]
            yield f"{function} no. {number} of {kernel.name}, {what}", call


def _says_how_to_cache(call: ast.Call) -> bool:
    """Tell whether a call names a policy or a modifier: assemblers refuse both at once."""
    return any(
        keyword.arg in ("eviction_policy", "cache_modifier", None) for keyword in call.keywords
    )


@triton_edit("eviction-policy", "Say whether what is loaded or stored will be needed again.")
def eviction_policy(text: TritonText) -> Iterator[Site]:
    for function, choices in (
        ("load", ("evict_first", "evict_last")),
        ("store", ("evict_first",)),
    ):
        for place, call in _places(text, function):
            if not _says_how_to_cache(call):
                for choice in choices:
                    added = text.keyword(call, f'eviction_policy="{choice}"')
                    yield Site(place, (added,), choice)


@triton_edit("cache-modifier", "Keep data that is used once out of the nearest cache.")
def cache_modifier(text: TritonText) -> Iterator[Site]:
    for function, choice in (("load", ".cg"), ("store", ".cs")):
        for place, call in _places(text, function):
            if not _says_how_to_cache(call):
                added = text.keyword(call, f'cache_modifier="{choice}"')
                yield Site(place, (added,), choice)


@triton_edit(
    "contiguity-hint", "Tell the compiler that a block of offsets is aligned and without gaps."
)
def contiguity_hint(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        starts = _block_starts(text, kernel)
        for node in ast.walk(kernel):
            size = _aligned_block(text, node, starts)
            if size and isinstance(node, ast.BinOp):
                hint = f"tl.max_contiguous(tl.multiple_of({text.of(node)}, {size}), {size})"
                place = f"offsets on line {node.lineno - kernel.lineno} of {kernel.name}"
                yield Site(place, (text.replaced(node, hint),))


def _block_starts(text: TritonText, kernel: ast.FunctionDef) -> set[tuple[str, str]]:
    """Pairs of a loop's variable and the block size that it is a multiple of."""
    found = set()
    for node in ast.walk(kernel):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
            arguments = [text.of(argument) for argument in node.iter.args]
            if len(arguments) == 3 and arguments[0] == "0":
                found.add((text.of(node.target), arguments[2]))
    return found


def _aligned_block(text: TritonText, node: ast.AST, starts: set[tuple[str, str]]) -> str:
    """Return the size of a block of offsets that begins at a multiple of it."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return ""
    ranges = calls(node.right, "arange")
    if len(ranges) != 1 or ranges[0] is not node.right or len(ranges[0].args) != 2:
        return ""
    size = text.of(ranges[0].args[1])
    left = node.left
    if text.of(ranges[0].args[0]) != "0":
        return ""
    if isinstance(left, ast.Name):
        return size if (left.id, size) in starts else ""
    product = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult)
    return size if product and isinstance(left, ast.BinOp) and text.of(left.right) == size else ""


@triton_edit("reciprocal", "Multiply by a reciprocal. Results may differ in the last digit.")
def reciprocal(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        number = 0
        for node in ast.walk(kernel):
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
                continue
            if isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant):
                continue
            number += 1
            new = f"{text.operand(node.left)} * (1.0 / {text.operand(node.right)})"
            place = f"division no. {number} of {kernel.name}"
            yield Site(place, (text.replaced(node, new),))


@triton_edit(
    "narrow-offsets",
    "Compute offsets in 32 bits. Right where no tensor has more than 2**31 elements.",
)
def narrow_offsets(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        splices = []
        for node in ast.walk(kernel):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr == "to" and [text.of(a) for a in node.args] == ["tl.int64"]:
                splices.append(text.replaced(node, text.operand(node.func.value)))
        nested = any(a is not b and a.start <= b.start < a.end for a in splices for b in splices)
        if splices and not nested:
            yield Site(kernel.name, tuple(splices))
