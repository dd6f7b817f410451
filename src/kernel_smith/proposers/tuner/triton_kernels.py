"""Triton kernels in a syntax tree, where they are launched, and what each parameter is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_smith.proposers.tuner.scope import Scopes, last_name

STAGES = "num_stages"
OPTIONS = ("num_warps", STAGES)


@dataclass(frozen=True)
class Kernel:
    """A `@triton.jit` function."""

    name: str
    function: ast.FunctionDef
    parameters: tuple[str, ...]
    constants: frozenset[str]
    loops: bool
    """Is there a loop that stages could be pipelined in, here or in a function that is called?"""


@dataclass(frozen=True)
class Launch:
    """`kernel[grid](...)`: what its `tl.constexpr` parameters and Triton's options are given."""

    kernel: Kernel
    call: ast.Call
    grid: ast.expr
    given: dict[str, ast.expr]


def find_kernels(tree: ast.Module) -> dict[str, Kernel]:
    functions = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(last_name(decorator) == "jit" for decorator in node.decorator_list)
    }
    found = {}
    for name, node in functions.items():
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        constants = frozenset(a.arg for a in arguments if _is_constexpr(a.annotation))
        parameters = tuple(a.arg for a in arguments)
        found[name] = Kernel(name, node, parameters, constants, _loops(name, functions))
    return found


def _loops(name: str, functions: dict[str, ast.FunctionDef]) -> bool:
    """Does a function loop, or one that it calls?"""
    to_see, seen = [name], set()
    while to_see:
        function = to_see.pop()
        if function in seen or function not in functions:
            continue
        seen.add(function)
        for node in ast.walk(functions[function]):
            if isinstance(node, ast.While) or (
                isinstance(node, ast.For) and last_name(node.iter) != "static_range"
            ):
                return True
            if isinstance(node, ast.Call):
                to_see.append(last_name(node))
    return False


def find_launches(tree: ast.Module, kernels: dict[str, Kernel], scopes: Scopes) -> Iterator[Launch]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            kernel = kernels.get(last_name(node.func.value))
            if kernel is not None:
                grid = scopes.value(node.func.slice)
                yield Launch(kernel, node, grid, _given(node, kernel))


def autotuned(kernel: Kernel, scopes: Scopes) -> ast.List | None:
    """Return the list of configurations that an autotuner chooses from."""
    for decorator in kernel.function.decorator_list:
        if isinstance(decorator, ast.Call) and last_name(decorator) == "autotune":
            listed = [word.value for word in decorator.keywords if word.arg == "configs"]
            for node in [*listed, *decorator.args[:1]]:
                value = scopes.value(node)
                return value if isinstance(value, ast.List) else None
    return None


def defaults(kernel: Kernel) -> Iterator[tuple[str, ast.expr]]:
    """Yield the defaults of `tl.constexpr` parameters."""
    arguments = kernel.function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        ),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    for argument, default in pairs:
        if default is not None and argument.arg in kernel.constants:
            yield argument.arg, default


def _given(call: ast.Call, kernel: Kernel) -> dict[str, ast.expr]:
    given: dict[str, ast.expr] = {}
    for parameter, value in zip(kernel.parameters, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        given[parameter] = value
    given |= {word.arg: word.value for word in call.keywords if word.arg is not None}
    return {
        name: value for name, value in given.items() if name in kernel.constants or name in OPTIONS
    }


def _is_constexpr(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str) and annotation.value.endswith("constexpr")
    return annotation is not None and last_name(annotation) == "constexpr"
