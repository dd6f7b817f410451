"""A function of another project's checkout, with all of the project that it needs, as one text.

Nothing of the project is imported or installed: the closure is taken on syntax trees, file by file.
What comes from elsewhere, such as torch and Triton, stays an import. What a function imports when
it is called stays where it is, and fails there if it is reached. A single text, such as a task or a
candidate, can be taken apart in the same way.
"""

from __future__ import annotations

import ast
import symtable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kernel_smith.errors import BadInput, reason_of
from kernel_smith.trajectories.mine.names import (
    Imported,
    SourceFile,
    global_names,
    imports_of,
)

_ADVICE = "name a function that needs less, or write the call down as a task file"


@dataclass
class _File:
    """One file of the checkout, and which of its statements are needed."""

    path: Path
    own: SourceFile  # where its relative imports start from
    lines: list[str]
    statements: list[ast.stmt]
    binders: dict[str, list[int]]  # name -> the statements that bind it
    needed: set[int] = field(default_factory=set)

    def text_of(self, statement: ast.stmt) -> str:
        """As its author wrote it, with decorators and the comments inside."""
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(each.lineno for each in decorators)])
        return "\n".join(self.lines[first - 1 : statement.end_lineno])


class Theirs(NamedTuple):
    """A function of a project that stands alone."""

    text: str
    """Its definition, and before it those of what it uses."""
    files: tuple[Path, ...]
    """Where they are from."""


def take_function(root: Path, file: Path, function: str) -> Theirs:
    """Take a function out of a checkout. Raises `BadInput`.

    `root` is the folder that the project's imports start from.
    """
    closure = _Closure(root)
    closure.need(file, function)
    return closure.taken()


def take_names(source: str, *names: str) -> str:
    """Take what defines some names out of one text, with what that needs. Raises `BadInput`."""
    file = Path("source.py")
    closure = _Closure(Path("nowhere"), {file: _parsed(file, file, source)})
    for name in names:
        closure.need(file, name)
    return closure.taken().text


class _Closure:
    def __init__(self, root: Path, files: dict[Path, _File] | None = None) -> None:
        self._root = root
        self._files: dict[Path, _File] = files or {}
        self._imports: dict[str, str] = {}
        self._definitions: list[str] = []  # in an order in which they can be executed
        self._homes: dict[str, tuple[Path, str]] = {}  # where a name is from, and its definition

    def taken(self) -> Theirs:
        imports = "\n".join(sorted(set(self._imports.values())))
        parts = [*filter(None, [imports]), *self._definitions]
        return Theirs("\n\n\n".join(parts) + "\n", tuple(self._files))

    def need(self, path: Path, name: str) -> None:
        """Bring a name of a file along, and what it refers to."""
        file = self._read(path)
        binders = file.binders.get(name)
        if binders is None:
            if self._need_from_star(file, name):
                return
            raise BadInput(
                f"{path}: nothing there is called {name!r}",
                hint="name a function of that file: PATH:FUNCTION",
            )
        for index in binders:
            statement = file.statements[index]
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._need_import(file, statement, name)
            elif index not in file.needed:
                file.needed.add(index)
                self._need_inside(file, statement)
                self._define(name, path, file.text_of(statement))

    def _need_inside(self, file: _File, statement: ast.stmt) -> None:
        inner = {alias for node in ast.walk(statement) for alias in _bound_by_import(file, node)}
        for name in global_names(statement):
            if name in file.binders and name not in inner:
                self.need(file.path, name)
            elif name not in file.binders:
                self._need_from_star(file, name)

    def _need_import(self, file: _File, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        imported = next(one for bound, one in imports_of(file.own, statement) if bound == name)
        home = self._file_of(imported.module)
        if home is None:
            self._import(name, imported)
        elif imported.name is None or self._file_of(imported.target) is not None:
            raise BadInput(
                f"{file.path}:{statement.lineno}: `{imported.statement}` takes a whole module of "
                "the project",
                hint=_ADVICE,
            )
        else:
            self.need(home, imported.name)
            if imported.name != name:
                self._define(name, file.path, f"{name} = {imported.name}")

    def _need_from_star(self, file: _File, name: str) -> bool:
        """Tell whether the name came from another file of the project by `from ... import *`."""
        for statement in file.statements:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                _, imported = next(imports_of(file.own, statement))
                home = self._file_of(imported.module)
                if home is not None and name in self._read(home).binders:
                    self.need(home, name)
                    return True
        return False

    def _import(self, name: str, imported: Imported) -> None:
        known = self._imports.setdefault(name, imported.statement)
        if known != imported.statement and not known.startswith("import "):
            raise BadInput(f"`{name}` is `{known}` and `{imported.statement}`", hint=_ADVICE)

    def _define(self, name: str, path: Path, text: str) -> None:
        home, known = self._homes.setdefault(name, (path, text))
        if home != path and known != text:  # two loggers may well be one
            raise BadInput(f"`{name}` is defined in {home} and in {path}", hint=_ADVICE)
        if text not in self._definitions:
            self._definitions.append(text)

    def _file_of(self, module: str) -> Path | None:
        """Tell where the project keeps a module; None if it is not the project's, or is a
        folder."""
        base = self._root.joinpath(*module.split("."))
        candidates = [base.with_name(base.name + ".py"), base / "__init__.py"]
        return next((path for path in candidates if path.is_file()), None)

    def _read(self, path: Path) -> _File:
        if path not in self._files:
            try:
                text, inside = path.read_text("utf-8"), path.relative_to(self._root)
                self._files[path] = _parsed(path, inside, text)
            except (OSError, SyntaxError, ValueError) as error:
                raise BadInput(f"{path} cannot be read: {reason_of(error)}", hint=_ADVICE) from None
        return self._files[path]


def _parsed(path: Path, inside: Path, text: str) -> _File:
    parts = inside.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    statements = ast.parse(text).body
    file = _File(path, SourceFile(str(inside), module), text.splitlines(), statements, {})
    for index, statement in enumerate(statements):
        for name in _bound(statement):
            file.binders.setdefault(name, []).append(index)
    return file


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement gives to its module."""
    if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
        return []
    table = symtable.symtable(ast.unparse(statement), "theirs", "exec")
    return [s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()]


def _bound_by_import(file: _File, node: ast.AST) -> list[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return []
    return [name for name, _ in imports_of(file.own, node)]
