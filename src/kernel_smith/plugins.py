"""What other packages offer by entry points: backends and methods of search.

An entry point of the group `kernel_smith.backends` names a class: see `docs/new-backend.md` for
what it is to have. One of `kernel_smith.methods` names what makes a strategy of a configuration.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kernel_smith.errors import MissingPrerequisite


@functools.cache
def offered_backends() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="kernel_smith.backends")}


@functools.cache
def offered_methods() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="kernel_smith.methods")}


def load_backend(name: str) -> Any:
    """The class behind an offered backend. Raises `MissingPrerequisite` if it cannot be loaded."""
    return _load("backend", offered_backends()[name])


def load_method(name: str) -> Any:
    """What makes an offered method. Raises `MissingPrerequisite` if it cannot be loaded."""
    return _load("method", offered_methods()[name])


def _load(kind: str, entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise MissingPrerequisite(
            f"{kind} {entry.name} ({entry.value}) cannot be loaded: {error}",
            hint="mend or uninstall the package that offers it",
        ) from error
