"""What a backend knows about its dialect. The judge is the same for all of them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal as OneOf
from typing import Protocol

from kernel_smith.inline.literals import Literal

Route = OneOf["native", "nvidia", "cpu"]
"""How kernels get to run: on the hardware that they are for, which is the only way to time them; on
an NVIDIA GPU in place of it; or interpreted on the CPU."""


class Backend(Protocol):
    """How candidates of one dialect are compiled, inspected and disarmed."""

    name: str
    gpu: bool
    """Are its kernels for a GPU? Without one they are interpreted, for correctness alone."""
    in_process: bool
    """Are kernels functions of the candidate, which its own process compiles, and not texts?"""

    def route(self, *, on_device: bool) -> Route:
        """How kernels run on this machine, on its GPU or beside it."""

    def sources(self, tree: ast.Module) -> list[Literal]:
        """Kernel sources that can be compiled before the candidate runs."""

    def forbidden_symbols(self, compiled: Path) -> list[str]:
        """Imported functions that no honest kernel needs."""

    def disarm(self, compiled: Path, target: Path) -> None:
        """Write a copy whose kernels return at once, for the test that they matter."""
