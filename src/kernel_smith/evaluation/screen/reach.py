"""Which functions of a file `ModelNew.forward` may come to call, judged by their names alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TypeAlias

from kernel_smith.evaluation.screen.code import Code

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def functions_behind_forward(code: Code) -> list[Function]:
    """`forward` of `ModelNew` and, from there on, whatever is named like something it uses."""
    by_name = _functions_by_name(code)
    pending = _forward_methods(code)
    found: dict[Function, None] = dict.fromkeys(pending)
    seen_names: set[str] = set()
    while pending:
        for name in _names_in(pending.pop()) - seen_names:
            seen_names.add(name)
            for function in by_name.get(name, ()):
                if function not in found:
                    found[function] = None
                    pending.append(function)
    return list(found)


def _functions_by_name(code: Code) -> dict[str, list[Function]]:
    """Functions under their own names, and the methods of a class under its name too."""
    by_name: dict[str, list[Function]] = defaultdict(list)
    for node in code.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            by_name[node.name].append(node)
        elif isinstance(node, ast.ClassDef):
            by_name[node.name].extend(_methods(node))
    return by_name


def _forward_methods(code: Code) -> list[Function]:
    """`forward` of the class that `ModelNew` names, and of its base classes in the file."""
    classes = {node.name: node for node in code.nodes if isinstance(node, ast.ClassDef)}
    pending = ["ModelNew", *_aliases(code)]
    seen: set[str] = set()
    found: list[Function] = []
    while pending:
        name = pending.pop()
        if name in classes and name not in seen:
            seen.add(name)
            found += [method for method in _methods(classes[name]) if method.name == "forward"]
            pending += [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
    return found


def _aliases(code: Code) -> list[str]:
    bindings = code.names.module.bindings.get("ModelNew", [])
    return [binding.id for binding in bindings if isinstance(binding, ast.Name)]


def _methods(node: ast.ClassDef) -> list[Function]:
    return [
        statement
        for statement in node.body
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def _names_in(function: Function) -> set[str]:
    """What a function reads by name. Special methods are left out: every class has those."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
            names.add(node.attr)
    return names
