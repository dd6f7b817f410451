"""A class with everything of its library that it needs, as one text that stands alone.

The closure is taken on syntax trees. Names of the same file, and names that other files of the same
library define, are brought along. Of other packages only those that every task may import are
allowed; a few well-known helpers of other kinds have stand-ins. Anything else is a refusal.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from kernel_smith.trajectories.mine.cleaning import cleaned
from kernel_smith.trajectories.mine.configuration import config_defaults, config_fields
from kernel_smith.trajectories.mine.guesses import Value
from kernel_smith.trajectories.mine.library import Library
from kernel_smith.trajectories.mine.names import (
    BUILTINS,
    Imported,
    SourceFile,
    global_names,
    imports_of,
    parse,
)
from kernel_smith.trajectories.mine.refusal import Refused
from kernel_smith.trajectories.mine.stand_ins import STAND_INS

ALLOWED_MODULES = frozenset(
    {
        *("abc", "collections", "contextlib", "copy", "dataclasses", "enum", "functools"),
        *("itertools", "math"),
        *("numbers", "numpy", "operator", "torch", "types", "typing", "typing_extensions"),
    }
)
_NOT_OF_TORCH = ("torch.distributed", "torch.utils.cpp_extension", "torch.utils.data", "torch.hub")
_MOST_HOPS = 8
_MOST_DEFINITIONS = 60
_MOST_CHARACTERS = 60_000
_RESERVED = frozenset({"Model", "ModelNew", "TASK", "get_inputs", "get_init_inputs"})


@dataclass(frozen=True)
class Extract:
    """A class, standing alone."""

    class_name: str
    imports: tuple[str, ...]
    body: str
    path: str
    line: int
    docstring: str
    config_fields: tuple[str, ...]
    """What is read of an argument named `config`."""
    config_defaults: dict[str, Value]
    """What the library's own configuration says of them."""

    @property
    def text(self) -> str:
        return "\n".join(self.imports) + "\n\n\n" + self.body + "\n"


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
        for _ in range(_MOST_HOPS):
            if name in file.definitions:
                return file, name
            imported = file.imports.get(name) or self._from_star(file, name)
            if imported is None:
                return None
            owner = self.modules.get(imported.module) if imported.name else None
            if owner is None or imported.name is None:
                return imported
            file, name = owner, imported.name
        return None

    def _from_star(self, file: SourceFile, name: str) -> Imported | None:
        for module in file.stars:
            owner = self.modules.get(module)
            if owner is not None and (name in owner.definitions or name in owner.imports):
                return Imported(module, name, f"from {module} import {name}")
        return None


@dataclass
class _Collected:
    statements: list[str] = field(default_factory=list)
    imports: dict[str, Imported] = field(default_factory=dict)
    import_lines: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)
    """Of each name: where it comes from, so that two of a name are noticed."""


def extract(shelf: Shelf, file: SourceFile, node: ast.ClassDef) -> Extract:
    """The class and all that it needs. Raises `Refused`."""
    collected = _Collected()
    _collect(shelf, file, node.name, collected)
    if reserved := _RESERVED & collected.origins.keys():
        raise Refused("reserved-name", min(reserved))
    # The stand-ins and what is written around the class need torch in any case.
    imports = tuple(sorted({*collected.import_lines, "import torch"}))
    body = "\n\n\n".join(collected.statements)
    if len(body) > _MOST_CHARACTERS:
        raise Refused("too-large", f"{len(body)} characters")
    fields = config_fields(body)
    return Extract(
        class_name=node.name,
        imports=imports,
        body=body,
        path=file.path,
        line=node.lineno,
        docstring=ast.get_docstring(node) or "",
        config_fields=fields,
        config_defaults=config_defaults(shelf.files, file, fields) if fields else {},
    )


def _collect(shelf: Shelf, file: SourceFile, name: str, into: _Collected) -> None:
    found = shelf.find(file, name)
    if found is None:
        raise Refused("unknown-name", f"`{name}` in {file.path}")
    if isinstance(found, Imported):
        _import(found, name, into)
        return
    home, own_name = found
    if own_name in home.ambiguous and own_name not in STAND_INS:
        raise Refused("several-definitions", f"`{own_name}` in {home.path}")
    origin = f"{home.path}:{own_name}"
    if not _claim(own_name, origin, into):
        return
    if len(into.origins) > _MOST_DEFINITIONS:
        raise Refused("too-large", f"more than {_MOST_DEFINITIONS} definitions")
    if own_name in STAND_INS:
        into.statements.append(STAND_INS[own_name])
    else:
        _define(shelf, home, own_name, into)
    if own_name != name and _claim(name, origin, into):
        into.statements.append(f"{name} = {own_name}")


def _define(shelf: Shelf, home: SourceFile, name: str, into: _Collected) -> None:
    statement = cleaned(home.definitions[name], lambda n: _may_annotate(shelf, home, n))
    _check_inner_imports(home, statement)
    for needed in global_names(statement):
        if needed != name:
            _collect(shelf, home, needed, into)
    into.statements.append(ast.unparse(statement))


def _check_inner_imports(home: SourceFile, statement: ast.stmt) -> None:
    for node in ast.walk(statement):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for _, imported in imports_of(home, node):
                if not is_allowed(imported):
                    raise Refused("needs-import", imported.module.partition(".")[0])


def _claim(name: str, origin: str, into: _Collected) -> bool:
    """Whether the name is new here; refuses a name that already means something else."""
    if name in into.imports:
        raise Refused("name-conflict", f"`{name}` is imported, and is in {origin}")
    known = into.origins.setdefault(name, "")
    if known not in ("", origin):
        raise Refused("name-conflict", f"`{name}` is in {known} and in {origin}")
    into.origins[name] = origin
    return not known


def _import(imported: Imported, name: str, into: _Collected) -> None:
    if not is_allowed(imported):
        if name in STAND_INS:
            if _claim(name, f"stand-in:{name}", into):
                into.statements.append(STAND_INS[name])
            return
        raise Refused("needs-import", imported.module.partition(".")[0] or name)
    if name in into.origins:
        raise Refused("name-conflict", f"`{name}` is imported, and is in {into.origins[name]}")
    known = into.imports.setdefault(name, imported)
    if known.target != imported.target:
        raise Refused("name-conflict", f"`{name}` is {known.target} and {imported.target}")
    # `import torch` and `import torch.nn` bind the same name, and both are needed.
    plain = imported.name is None and " as " not in imported.statement
    into.import_lines.add(imported.statement if plain else known.statement)


def is_allowed(imported: Imported) -> bool:
    """May a task import this?"""
    if any(f"{imported.target}.".startswith(f"{module}.") for module in _NOT_OF_TORCH):
        return False
    return imported.module.partition(".")[0] in ALLOWED_MODULES


def _may_annotate(shelf: Shelf, file: SourceFile, name: str) -> bool:
    if name in BUILTINS:
        return name not in file.definitions
    found = shelf.find(file, name)
    return isinstance(found, Imported) and is_allowed(found)
