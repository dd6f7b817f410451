"""Backends that other packages offer, by the entry points of the group `kernel_smith.backends`.

An entry point names a class: see `docs/new-backend.md` for what it is to have.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kernel_smith.errors import MissingPrerequisite


@functools.cache
def offered_backends() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="kernel_smith.backends")}


def load_backend(name: str) -> Any:
    """The class behind an offered backend. Raises `MissingPrerequisite` if it cannot be loaded."""
    entry = offered_backends()[name]
    try:
        return entry.load()
    except Exception as error:
        raise MissingPrerequisite(
            f"backend {name} ({entry.value}) cannot be loaded: {error}",
            hint="mend or uninstall the package that offers it",
        ) from error
