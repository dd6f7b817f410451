"""A task file as a syntax tree: read, parsed, searched, and never executed."""

from __future__ import annotations

import ast
import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_smith.errors import BadInput

_LONGEST = 64 << 20  # a file of weights may have been meant by mistake
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class TaskFile:
    """The text and the syntax tree of one task file."""

    path: Path
    source: str
    tree: ast.Module

    def error(self, line: int, what: str, hint: str) -> BadInput:
        """Return an error in this file, for the caller to raise."""
        return BadInput(f"{self.path}:{line}: {what}", hint=hint)

    def classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in self.statements() if isinstance(node, ast.ClassDef)}

    def functions(self) -> dict[str, ast.FunctionDef]:
        return {node.name: node for node in self.statements() if isinstance(node, ast.FunctionDef)}

    def statements(self) -> Iterator[ast.stmt]:
        """Yield every statement of the module's own scope, also those inside `if`, `try`,
        `with`."""
        pending: list[ast.AST] = list(reversed(self.tree.body))
        while pending:
            node = pending.pop()
            if isinstance(node, ast.stmt):
                yield node
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = [child for child in ast.iter_child_nodes(node) if _holds_statements(child)]
                pending.extend(reversed(inner))


def load(path: Path) -> TaskFile:
    """Read and parse a file; whatever prevents that is a `BadInput` with the place."""
    if not os.path.realpath(path).isprintable():  # which bytes that are no text are not, either
        raise BadInput(
            f"{str(path)!a}: the file's name cannot be printed, expected letters",
            hint="rename the file or its folder; names are UTF-8, and the locale has to say so",
        )
    source = _decode(path, _read(path))
    try:
        with warnings.catch_warnings():
            # An invalid escape in the author's file is not ours to report, nor to fail on.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        raise BadInput(
            f"{path}:{error.lineno or 1}: {error.msg}, expected Python {_VERSION}",
            hint=f"correct the syntax there; what is newer than {_VERSION} cannot be read",
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadInput(
            f"{path}:1: {error or 'nested too deeply'}, expected Python {_VERSION}",
            hint="remove null bytes and very deep nesting from the file",
        ) from None
    return TaskFile(path=path, source=source, tree=tree)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """`did you mean ...?` with the closest known name, ignoring case; else `otherwise`."""
    by_lower_case = {choice.lower(): choice for choice in known}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f"did you mean `{by_lower_case[close[0]]}`?" if close else otherwise


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except FileNotFoundError:
        raise BadInput(
            f"{path}: no such file, expected a task file",
            hint="check the path, or see `kernel-smith tasks list`",
        ) from None
    except IsADirectoryError:
        raise BadInput(
            f"{path}: this is a folder, expected a task file",
            hint=f"name the file in it, such as {path / 'task.py'}",
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(
            f"{path}: cannot be read ({reason}), expected a task file",
            hint="check the path and its permissions",
        ) from None
    if len(data) > _LONGEST:
        raise BadInput(
            f"{path}: longer than {_LONGEST >> 20} MiB, expected a task file",
            hint="name a Python file; weights are drawn in Model.__init__",
        )
    return data


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8, expected UTF-8 text",
            hint="save the file as UTF-8",
        ) from None


def _holds_statements(node: ast.AST) -> bool:
    return isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case))
