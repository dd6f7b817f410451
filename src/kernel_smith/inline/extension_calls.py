"""Calls of PyTorch's `load_inline` in a candidate's syntax tree whose texts are literals.

`find_extensions` puts the source of each together as the candidate's process will, so that it can
be compiled ahead. Calls that it cannot read are left to the process.
"""

from __future__ import annotations

import ast
from typing import Any

from kernel_smith.inline.extension import CPP_PIECE, CUDA_PIECE, UnsupportedArgument, compose
from kernel_smith.inline.literals import (
    Constants,
    Literal,
    Piece,
    first_line_of,
    full_name,
    imported_names,
    joined,
)

_CALL = "torch.utils.cpp_extension.load_inline"
_BY_POSITION = ("name", "cpp_sources", "cuda_sources")  # the same in all versions of PyTorch
_TEXTS = {"cpp_sources": CPP_PIECE, "cuda_sources": CUDA_PIECE}
_STRINGS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
_SWITCHES = (
    *("with_cuda", "with_pytorch_error_handling", "no_implicit_headers", "is_python_module"),
)


class _NotLiteral(Exception):
    """An argument that only the candidate's process knows."""


def find_extensions(tree: ast.Module) -> list[Literal]:
    """Return every call that can be read, in the order of the file."""
    names = imported_names(tree)
    constants = Constants(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and full_name(node.func, names) == _CALL:
            try:
                found.append(_literal(node, constants))
            except (_NotLiteral, UnsupportedArgument):
                continue
    return sorted(found, key=lambda literal: literal.call_line)


def _literal(call: ast.Call, constants: Constants) -> Literal:
    if len(call.args) > len(_BY_POSITION):
        raise _NotLiteral
    nodes: dict[str, ast.expr] = dict(zip(_BY_POSITION, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _NotLiteral
        nodes[keyword.arg] = keyword.value
    given: dict[str, Any] = {}
    pieces: list[Piece] = []
    for name, node in nodes.items():
        if isinstance(node, ast.Constant) and node.value is None:
            continue
        if name in _TEXTS:
            texts = _texts(node, constants)
            given[name] = [text for text, _ in texts]
            kept = ((text, line) for text, line in texts if text)  # numbered as `compose` does
            pieces += [
                Piece(f"{_TEXTS[name]}{i}", text, line) for i, (text, line) in enumerate(kept, 1)
            ]
        elif name == "functions":
            given[name] = _functions(node, constants)
        elif name in _STRINGS:
            given[name] = [text for text, _ in _texts(node, constants)]
        elif name in _SWITCHES:
            given[name] = _switch(node)
    if not pieces:
        raise _NotLiteral
    made = compose(given)
    line = pieces[0].first_line
    return Literal(made.dialect, made.source, made.flags, line, call.lineno, tuple(pieces))


def _texts(node: ast.expr, constants: Constants) -> list[tuple[str, int]]:
    """Return one text or several, each with the line on which it begins."""
    elements = constants.elements(node)
    found = [constants.pieces(element) for element in ([node] if elements is None else elements)]
    if any(not constant for constant in found):
        raise _NotLiteral
    return [(joined(constant), first_line_of(constant[0])) for constant in found if constant]


def _functions(node: ast.expr, constants: Constants) -> Any:
    """Return the names, or a dictionary with a description for each."""
    if not isinstance(node, ast.Dict):
        return [text for text, _ in _texts(node, constants)]
    if None in node.keys:
        raise _NotLiteral
    keys, values = (
        [_texts(item, constants)[0][0] for item in items if item is not None]
        for items in (node.keys, node.values)
    )
    return dict(zip(keys, values, strict=True))


def _switch(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    raise _NotLiteral
