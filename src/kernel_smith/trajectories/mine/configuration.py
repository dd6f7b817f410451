"""An argument named `config`: which fields a text reads, and what the library says of them."""

from __future__ import annotations

import ast
import contextlib
import json

from kernel_smith.trajectories.mine.guesses import Value
from kernel_smith.trajectories.mine.names import SourceFile


def config_defaults(
    files: list[SourceFile], file: SourceFile, fields: tuple[str, ...]
) -> dict[str, Value]:
    """Literal defaults in the configuration classes that lie beside a file."""
    folder = file.module.rpartition(".")[0]
    found: dict[str, Value] = {}
    for other in files:
        owner, _, name = other.module.rpartition(".")
        if owner == folder and name.startswith("configuration_"):
            for statement in other.definitions.values():
                found |= _literal_defaults(statement)
    return {name: found[name] for name in fields if name in found}


def _literal_defaults(statement: ast.stmt) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for node in ast.walk(statement):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
            named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            pairs = [(a.arg, d) for a, d in zip(named, node.args.defaults, strict=True)]
        else:
            continue
        for name, value in pairs:
            with contextlib.suppress(ValueError, TypeError):
                found[name] = json.loads(json.dumps(ast.literal_eval(value)))
    return found


def config_fields(body: str) -> tuple[str, ...]:
    """Names of the fields that are read, in order."""
    found = {
        node.attr
        for node in ast.walk(ast.parse(body))
        if isinstance(node, ast.Attribute) and _is_config(node.value)
    }
    return tuple(sorted(found))


def _is_config(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "config"
    return isinstance(node, ast.Name) and node.id == "config"
