"""Reads a module that Inductor wrote: its kernels' texts, and the statements that call them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kernel_smith.proposers.seed.buffers import made_as_seen
from kernel_smith.proposers.seed.refusal import refused


@dataclass(frozen=True)
class Generated:
    """`arguments` are the names of the graph's inputs in order; `body` is what follows them."""

    kernels: dict[str, str]
    arguments: list[str]
    body: list[ast.stmt]


def read_generated(code: str) -> Generated:
    """Return the parts of one generated module."""
    tree = ast.parse(code)
    kernels: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id="async_compile"), attr=kind), args=parts
                ),
            ):
                kernels[name] = _kernel_text(name, kind, parts)
    body = _call_function(tree).body
    arguments, rest = _split_arguments(body)
    return Generated(kernels, arguments, made_as_seen(rest, set(kernels)))


def _kernel_text(name: str, kind: str, arguments: list[ast.expr]) -> str:
    match kind, arguments:
        case "triton", [_, ast.Constant(value=str(text)), *_]:
            return text
        case "cpp_pybinding", [_, ast.Constant(value=str(text)), *_]:
            return text
    raise refused(f"the compiler makes {name} by `{kind}`, which seeds do not know")


def _call_function(tree: ast.Module) -> ast.FunctionDef:
    """`call`, at module level or as a method of `Runner`, depending on torch's version."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "call":
            return node
    raise refused("the compiler's output has no `call`; this version of torch is not known")


def _split_arguments(body: list[ast.stmt]) -> tuple[list[str], list[ast.stmt]]:
    for index, statement in enumerate(body):
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id="args")):
                return [name.id for name in names if isinstance(name, ast.Name)], body[index + 1 :]
    return [], body
