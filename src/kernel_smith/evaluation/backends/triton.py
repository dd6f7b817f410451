"""Triton kernels. Without a GPU they are interpreted: that shows whether they are correct."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
from pathlib import Path

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.backends.base import Route
from kernel_smith.inline.literals import Literal


def require_triton() -> str:
    """The version that is installed. Raises `MissingPrerequisite` if there is none."""
    if importlib.util.find_spec("triton") is None:
        raise MissingPrerequisite(
            "Triton is not installed, and the candidate's kernels need it",
            hint="pip install 'kernel-smith[triton]', or pip install 'triton>=3.2'",
        )
    return importlib.metadata.version("triton")


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
