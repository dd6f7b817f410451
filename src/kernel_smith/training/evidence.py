"""Is an answer's program a real kernel, and how much of the work do its own kernels do?

What the judge observed comes first; the source is asked where nothing was observed.
"""

from __future__ import annotations

import ast

from kernel_smith.programs.parsing import parse_python
from kernel_smith.records import Evaluation

_MAKERS = frozenset({"cpp", "cuda", "hip", "maca"})
_ENOUGH_SAMPLES = 20


def coverage(evaluation: Evaluation | None) -> float | None:
    """The share of time in authored kernels, from 0 to 1; None where too little was seen.

    On a GPU of the time of all kernels; on the CPU of the time in authored and library code, since
    the interpreter takes its part of every program.
    """
    if evaluation is None:
        return None
    if evaluation.device_kernels:
        kernels = evaluation.device_kernels
        authored = sum(kernel.share for kernel in kernels if kernel.origin == "authored")
        return min(authored, 1.0)
    parts = [part for part in evaluation.kernels if part.origin in ("authored", "library")]
    if sum(part.samples for part in parts) < _ENOUGH_SAMPLES:
        return None
    authored = sum(part.share for part in parts if part.origin == "authored")
    return authored / sum(part.share for part in parts)


def is_real_kernel(source: str, backend: str, evaluation: Evaluation | None) -> bool:
    """Does a kernel of the program's own run, as far as was seen, or can be read?

    A short kernel may never be seen by a sampler, so that what was not seen proves nothing.
    """
    return bool(coverage(evaluation)) or launches_a_kernel(source, backend)


def launches_a_kernel(source: str, backend: str) -> bool:
    """Whether the source makes a kernel and calls it: `kernel[grid](...)` of a `@triton.jit`
    function, or a function of a library that was compiled from text."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    nodes = list(ast.walk(tree))
    if backend == "triton":
        return bool(_jitted(nodes) & _subscripted_calls(nodes))
    return bool(_libraries(nodes) & _attribute_calls(nodes))


def _jitted(nodes: list[ast.AST]) -> set[str]:
    """Functions under a `jit` decorator, and other names that they are given."""
    names = {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and any(_last_name(_called(mark)) == "jit" for mark in node.decorator_list)
    }
    return names | _assigned(nodes, names)


def _libraries(nodes: list[ast.AST]) -> set[str]:
    makers = set(_MAKERS)
    for node in nodes:  # `from kernel_smith.inline import cpp as build`
        if isinstance(node, ast.ImportFrom) and node.module == "kernel_smith.inline":
            makers |= {alias.asname for alias in node.names if alias.asname}
    return _assigned(nodes, makers)


def _assigned(nodes: list[ast.AST], mentioned: set[str]) -> set[str]:
    """Names that are assigned an expression in which one of those `mentioned` occurs."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and any(
            _last_name(part) in mentioned for part in ast.walk(node.value)
        ):
            found |= {name for target in node.targets if (name := _last_name(target))}
    return found


def _subscripted_calls(nodes: list[ast.AST]) -> set[str]:
    return {
        name
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and (name := _last_name(node.func.value))
    }


def _attribute_calls(nodes: list[ast.AST]) -> set[str]:
    return {
        name
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (name := _last_name(node.func.value))
    }


def _called(node: ast.AST) -> ast.AST:
    """`triton.jit` of `triton.jit(debug=True)`."""
    return node.func if isinstance(node, ast.Call) else node


def _last_name(node: ast.AST) -> str:
    """`lib` of `lib`, `self.lib` and `module.lib`; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
