"""Which classes of a library are modules with a forward pass of their own or of a base class."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.trajectories.mine.closure import Shelf
from kernel_smith.trajectories.mine.names import Imported, SourceFile

_DEPTH = 8
_TORCH_MODULES = ("torch.nn", "torch.nn.modules")


def module_classes(shelf: Shelf) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
    """In the order of paths and lines."""
    for file in sorted(shelf.files, key=lambda file: file.path):
        for node in file.classes():
            if _descends(shelf, file, node, _DEPTH) and _computes(shelf, file, node, _DEPTH):
                yield file, node


def _descends(shelf: Shelf, file: SourceFile, node: ast.ClassDef, depth: int) -> bool:
    for base in node.bases:
        if _is_torch_module(file, base):
            return True
        home = _home(shelf, file, base)
        if home is not None and depth and _descends(shelf, *home, depth - 1):
            return True
    return False


def _computes(shelf: Shelf, file: SourceFile, node: ast.ClassDef, depth: int) -> bool:
    """Whether a `forward` can be seen, or is inherited from one of torch's own layers."""
    if any(isinstance(s, ast.FunctionDef) and s.name == "forward" for s in node.body):
        return True
    for base in node.bases:
        if _is_torch_module(file, base) and not ast.unparse(base).endswith("Module"):
            return True
        home = _home(shelf, file, base)
        if home is not None and depth and _computes(shelf, *home, depth - 1):
            return True
    return False


def _is_torch_module(file: SourceFile, base: ast.expr) -> bool:
    """`nn.Module`, `torch.nn.Conv2d`, or such a name imported from there."""
    parts = ast.unparse(base).split(".")
    imported = file.imports.get(parts[0])
    if imported is None or not all(part.isidentifier() for part in parts):
        return False
    start = imported.module + (f".{imported.name}" if imported.name else "")
    owner, _, name = ".".join([start, *parts[1:]]).rpartition(".")
    return owner.startswith(_TORCH_MODULES) and name[:1].isupper()


def _home(shelf: Shelf, file: SourceFile, base: ast.expr) -> tuple[SourceFile, ast.ClassDef] | None:
    if not isinstance(base, ast.Name):
        return None
    found = shelf.find(file, base.id)
    if found is None or isinstance(found, Imported):
        return None
    home, name = found
    node = home.definitions[name]
    return (home, node) if isinstance(node, ast.ClassDef) else None
