"""One file of a library: what it defines, what it imports, and what a piece of it refers to."""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from kernel_smith.programs.parsing import parse_python

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__class__"}


@dataclass(frozen=True)
class Imported:
    """What an import binds a name to: a module, or a name of one."""

    module: str
    name: str | None
    """None: the module itself."""
    statement: str

    @property
    def target(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass
class SourceFile:
    """A parsed file. Names that are bound twice, or only on a condition, are `ambiguous`."""

    path: str
    module: str
    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    imports: dict[str, Imported] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """Modules of which all names are imported."""
    ambiguous: set[str] = field(default_factory=set)

    def classes(self) -> Iterator[ast.ClassDef]:
        for name, statement in self.definitions.items():
            if isinstance(statement, ast.ClassDef) and name not in self.ambiguous:
                yield statement


def parse(path: str, text: str) -> SourceFile | None:
    """The file's names; None if it is no Python that this interpreter understands."""
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    file = SourceFile(path, _module_name(path))
    for statement in tree.body:
        _note(file, statement, conditional=False)
    return file


def _module_name(path: str) -> str:
    parts = list(PurePosixPath(path).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _note(file: SourceFile, statement: ast.stmt, *, conditional: bool) -> None:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        for name, imported in imports_of(file, statement):
            if name == "*":
                file.stars.append(imported.module)
            else:
                # The first of several wins: `try: import a` before `except: import b`.
                file.imports.setdefault(name, imported)
        return
    if isinstance(statement, (ast.If, ast.Try, ast.With)):
        for child in _nested(statement):
            _note(file, child, conditional=True)
        return
    for name in _bound(statement):
        if conditional or name in file.definitions:
            file.ambiguous.add(name)
        file.definitions[name] = statement


def _nested(statement: ast.If | ast.Try | ast.With) -> Iterator[ast.stmt]:
    yield from statement.body
    if not isinstance(statement, ast.With):
        yield from statement.orelse
    if isinstance(statement, ast.Try):
        for handler in statement.handlers:
            yield from handler.body
        yield from statement.finalbody


def imports_of(
    file: SourceFile, statement: ast.Import | ast.ImportFrom
) -> Iterator[tuple[str, Imported]]:
    for alias in statement.names:
        renamed = f" as {alias.asname}" if alias.asname else ""
        if isinstance(statement, ast.Import):
            bound = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else bound
            yield bound, Imported(target, None, f"import {alias.name}{renamed}")
        else:
            module = _absolute(file, statement)
            text = f"from {module} import {alias.name}{renamed}"
            yield alias.asname or alias.name, Imported(module, alias.name, text)


def _absolute(file: SourceFile, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    package = file.module.split(".")
    if not file.path.endswith("__init__.py"):
        package = package[:-1]
    package = package[: len(package) - statement.level + 1]
    return ".".join([*package, *([statement.module] if statement.module else [])])


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def global_names(statement: ast.stmt) -> list[str]:
    """Names that a statement takes from its module, in a fixed order."""
    text = ast.unparse(ast.fix_missing_locations(statement))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = symtable.symtable(text, "mined", "exec")
    found: dict[str, None] = {}
    for symbol in top.get_symbols():
        if symbol.is_referenced():
            found[symbol.get_name()] = None
    pending = list(top.get_children())
    while pending:
        table = pending.pop()
        pending += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() and (symbol.is_referenced() or symbol.is_assigned()):
                found[symbol.get_name()] = None
    return sorted(name for name in found if name not in BUILTINS)
