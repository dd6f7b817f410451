"""What a backend knows about its dialect. The judge is the same for all of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Protocol

from kernel_smith.inline.literals import Literal


class Backend(Protocol):
    """How candidates of one dialect are compiled, inspected and disarmed."""

    name: str
    gpu: bool
    """Are its kernels for a GPU? Without one they are interpreted, for correctness alone."""

    def sources(self, tree: ast.Module) -> list[Literal]:
        """Kernel sources that can be compiled before the candidate runs."""

    def forbidden_symbols(self, compiled: Path) -> list[str]:
        """Imported functions that no honest kernel needs."""

    def disarm(self, compiled: Path, target: Path) -> None:
        """Write a copy whose kernels return at once, for the test that they matter."""
