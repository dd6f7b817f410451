"""A class with everything of its library that it needs, as one text that stands alone.

The closure is taken on syntax trees. Names of the same file, and names that other files of the same
library define, are brought along. Of other packages only those that every task may import are
allowed; a few well-known helpers of other kinds have stand-ins. Anything else is a refusal.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from kernel_smith.trajectories.mine.cleaning import cleaned
from kernel_smith.trajectories.mine.library import Library
from kernel_smith.trajectories.mine.names import (
    BUILTINS,
    Imported,
    SourceFile,
    global_names,
    parse,
)
from kernel_smith.trajectories.mine.refusal import Refused

_MODULES = frozenset(
    {
        *("abc", "collections", "copy", "dataclasses", "enum", "functools", "itertools", "math"),
        *("numbers", "numpy", "operator", "torch", "types", "typing", "typing_extensions"),
    }
)
_NOT_OF_TORCH = ("torch.distributed", "torch.utils.cpp_extension", "torch.utils.data", "torch.hub")
_MOST_DEFINITIONS = 60
_MOST_CHARACTERS = 60_000
_RESERVED = frozenset({"Model", "ModelNew", "TASK", "get_inputs", "get_init_inputs"})

# What other packages offer under these names, reduced to what a forward pass sees of it.
_STAND_INS = {
    "ACT2FN": (
        "ACT2FN = {'gelu': torch.nn.GELU(), 'gelu_new': torch.nn.GELU('tanh'),"
        " 'relu': torch.nn.ReLU(), 'silu': torch.nn.SiLU(), 'tanh': torch.nn.Tanh()}"
    ),
    "GradientCheckpointingLayer": "GradientCheckpointingLayer = torch.nn.Module",
    "ModelMixin": "ModelMixin = torch.nn.Module",
    "is_torch_npu_available": "def is_torch_npu_available(): return False",
    "is_xformers_available": "def is_xformers_available(): return False",
    "is_torchdynamo_compiling": "def is_torchdynamo_compiling(): return False",
    "is_exportable": "def is_exportable(): return False",
    "is_scriptable": "def is_scriptable(): return False",
}


@dataclass(frozen=True)
class Extract:
    """A class, standing alone."""

    class_name: str
    text: str
    path: str
    line: int
    docstring: str
    config_fields: tuple[str, ...]
    """What is read of an argument named `config`."""


@dataclass
class Shelf:
    """The parsed files of a library, by the names that imports use."""

    files: list[SourceFile]
    modules: dict[str, SourceFile]

    @classmethod
    def of(cls, library: Library) -> Shelf:
        parsed = (parse(path, text) for path, text in library.files.items())
        files = [file for file in parsed if file is not None]
        modules: dict[str, SourceFile] = {}
        for file in files:
            # A source archive begins with a folder or two that imports do not name.
            parts = file.module.split(".")
            for skipped in range(min(3, len(parts))):
                modules.setdefault(".".join(parts[skipped:]), file)
        for file in files:
            modules[file.module] = file
        return cls(files, modules)

    def find(self, file: SourceFile, name: str) -> tuple[SourceFile, str] | Imported | None:
        """Where a name of a file is defined: in this library, elsewhere, or nowhere."""
        seen: set[tuple[str, str]] = set()
        while name not in file.definitions:
            imported = file.imports.get(name)
            if imported is None or (file.module, name) in seen:
                return None
            seen.add((file.module, name))
            owner = self.modules.get(imported.module) if imported.name else None
            if owner is None or imported.name is None:
                return imported
            file, name = owner, imported.name
        return file, name


@dataclass
class _Collected:
    statements: list[str] = field(default_factory=list)
    imports: dict[str, set[str]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    """Of each name: where it comes from, so that two of a name are noticed."""


def extract(shelf: Shelf, file: SourceFile, node: ast.ClassDef) -> Extract:
    """The class and all that it needs. Raises `Refused`."""
    collected = _Collected()
    _collect(shelf, file, node.name, collected)
    if reserved := _RESERVED & collected.origins.keys():
        raise Refused("reserved-name", min(reserved))
    imports = sorted({line for lines in collected.imports.values() for line in lines})
    if any("torch." in s and s.startswith(("ACT2FN", "Grad")) for s in collected.statements):
        imports = sorted({*imports, "import torch"})
    body = "\n\n\n".join(collected.statements)
    if len(body) > _MOST_CHARACTERS:
        raise Refused("too-large", f"{len(body)} characters")
    return Extract(
        class_name=node.name,
        text="\n".join(imports) + "\n\n\n" + body + "\n",
        path=file.path,
        line=node.lineno,
        docstring=ast.get_docstring(node) or "",
        config_fields=_config_fields(body),
    )


def _collect(shelf: Shelf, file: SourceFile, name: str, into: _Collected) -> None:
    found = shelf.find(file, name)
    if found is None:
        raise Refused("unknown-name", f"`{name}` in {file.path}")
    if isinstance(found, Imported):
        _import(found, name, into)
        return
    home, own_name = found
    if own_name in home.ambiguous:
        raise Refused("several-definitions", f"`{own_name}` in {home.path}")
    origin = f"{home.path}:{own_name}"
    if not _claim(own_name, origin, into):
        return
    if len(into.origins) > _MOST_DEFINITIONS:
        raise Refused("too-large", f"more than {_MOST_DEFINITIONS} definitions")
    if own_name in _STAND_INS:
        into.statements.append(_STAND_INS[own_name])
    else:
        _define(shelf, home, own_name, into)
    if own_name != name and _claim(name, origin, into):
        into.statements.append(f"{name} = {own_name}")


def _define(shelf: Shelf, home: SourceFile, name: str, into: _Collected) -> None:
    statement = cleaned(home.definitions[name], lambda n: _may_annotate(shelf, home, n))
    for needed in global_names(statement):
        if needed != name:
            _collect(shelf, home, needed, into)
    into.statements.append(ast.unparse(statement))


def _claim(name: str, origin: str, into: _Collected) -> bool:
    """Whether the name is new here; refuses a name that already means something else."""
    known = into.origins.setdefault(name, origin)
    if known != origin and not known.endswith(f"={origin}"):
        raise Refused("name-conflict", f"`{name}` is in {known} and in {origin}")
    if name in into.imports:
        raise Refused("name-conflict", f"`{name}` is imported, and is in {origin}")
    return not (known == origin and _seen(name, into))


def _seen(name: str, into: _Collected) -> bool:
    first = name not in into.__dict__.setdefault("_begun", set())
    into.__dict__["_begun"].add(name)
    return not first


def _import(imported: Imported, name: str, into: _Collected) -> None:
    if not is_allowed(imported):
        if name in _STAND_INS:
            if _claim(name, f"stand-in:{name}", into):
                into.statements.append(_STAND_INS[name])
            return
        raise Refused("needs-import", imported.module.partition(".")[0] or name)
    if name in into.origins:
        raise Refused("name-conflict", f"`{name}` is imported, and is in {into.origins[name]}")
    lines = into.imports.setdefault(name, set())
    plain = imported.name is None and imported.module == name
    if lines and imported.statement not in lines and not plain:
        raise Refused("name-conflict", f"`{name}` is imported in two ways")
    lines.add(imported.statement)


def is_allowed(imported: Imported) -> bool:
    """May a task import this?"""
    whole = imported.module + (f".{imported.name}" if imported.name else "")
    if any(whole == m or whole.startswith(f"{m}.") for m in _NOT_OF_TORCH):
        return False
    return imported.module.partition(".")[0] in _MODULES


def _may_annotate(shelf: Shelf, file: SourceFile, name: str) -> bool:
    if name in BUILTINS:
        return name not in file.definitions
    found = shelf.find(file, name)
    return isinstance(found, Imported) and is_allowed(found)


def _config_fields(body: str) -> tuple[str, ...]:
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
