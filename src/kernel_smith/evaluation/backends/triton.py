"""Triton kernels. Without a GPU they are interpreted: that shows whether they are correct."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.backends.base import Route
from kernel_smith.inline.literals import Literal

_OLDEST = (3, 2)
_UNKNOWN_VERSION = "of unknown version"  # vendors have packages of other names


def require_triton() -> str:
    """The version that is installed. Raises `MissingPrerequisite` if none is that can be used."""
    if importlib.util.find_spec("triton") is None:
        raise MissingPrerequisite(
            "Triton is not installed, and the candidate's kernels need it",
            hint="pip install 'kernel-smith[triton]', or pip install 'triton>=3.2'",
        )
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return _UNKNOWN_VERSION
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise MissingPrerequisite(
            f"Triton {version} is too old, expected 3.2 or newer",
            hint="pip install 'triton>=3.2', or your vendor's build of one",
        )
    return version


class TritonBackend:
    name = "triton"
    gpu = True
    in_process = True

    def __init__(self) -> None:
        require_triton()

    def route(self, *, on_device: bool) -> Route:
        return "native" if on_device else "cpu"

    def sources(self, tree: ast.Module) -> list[Literal]:
        """None: kernels are Python functions of the candidate itself."""
        return []

    def forbidden_symbols(self, compiled: Path) -> list[str]:
        return []

    def disarm(self, compiled: Path, target: Path) -> None:
        raise MissingPrerequisite("Triton kernels are no files", hint="nothing is compiled ahead")
