"""What every candidate has: `class ModelNew` with `forward`, and a kernel of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.evaluation.screen.code import Code
from kernel_smith.inline.literals import has_kernel_call
from kernel_smith.records import Finding, Reason

_PLAIN_BASES = ("torch.nn.Module", "torch.nn.modules.module.Module", "builtins.object")

_KERNEL_MAKERS = (
    "kernel_smith.inline.cpp",
    "kernel_smith.inline.cuda",
    "kernel_smith.inline.hip",
    "kernel_smith.inline.maca",
    "torch.utils.cpp_extension.load_inline",
    "torch.utils.cpp_extension.load",
    "triton.jit",
)


def model_class(code: Code) -> Iterator[Finding]:
    # `ModelNew = Softmax` is as good as a class statement.
    if "ModelNew" not in code.names.module.bindings:
        yield _missing(code, 1, "defines no `class ModelNew` at module level")
        return
    for statement in code.tree.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "ModelNew":
            yield _missing(code, statement.lineno, "defines `ModelNew` as a function, not a class")
    for node in code.nodes:
        if not isinstance(node, ast.ClassDef) or node.name != "ModelNew":
            continue
        if not _has_forward(code, node):
            yield _missing(code, node.lineno, "defines `class ModelNew` without `forward`")


def kernel_source(code: Code) -> Iterator[Finding]:
    uses = (reference.origin for reference in code.references if not reference.is_import)
    if not any(map(makes_kernels, uses)) and not has_kernel_call(code.tree):
        message = f"{code.name}:1: compiles no kernel, e.g. with `kernel_smith.inline.cpp`"
        yield Finding(reason=Reason.NO_KERNEL_SOURCE, line=1, message=message)


def makes_kernels(origin: str) -> bool:
    """Whether this function turns source text into a kernel."""
    return origin in _KERNEL_MAKERS


def _has_forward(code: Code, model: ast.ClassDef) -> bool:
    """Whether `forward` is in the class, set on it later, or may come from a base class."""
    if any(code.names.origin(base) not in _PLAIN_BASES for base in model.bases):
        return True
    in_class = (node for statement in model.body for node in ast.walk(statement))
    return any(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "forward"
        for node in in_class
    ) or any(_stores_forward(node) for node in code.nodes)


def _stores_forward(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="forward", ctx=ast.Store()):
            return True
        case ast.Attribute(value=ast.Name(id="ModelNew" | "self"), attr="forward", ctx=ast.Store()):
            return True
        case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value="forward"), _]):
            return True
    return False


def _missing(code: Code, line: int, what: str) -> Finding:
    return Finding(reason=Reason.NO_MODELNEW, line=line, message=f"{code.name}:{line}: {what}")
