"""The methods of search, by name."""

from __future__ import annotations

from collections.abc import Callable

from kernel_smith.errors import BadInput
from kernel_smith.records import RunConfig
from kernel_smith.search.base import Strategy
from kernel_smith.search.islands.islands import Islands

METHODS: dict[str, Callable[[RunConfig], Strategy]] = {
    "islands": Islands,
}


def make_strategy(config: RunConfig) -> Strategy:
    """The method that a run's configuration names, before anything happened."""
    if config.method not in METHODS:
        raise BadInput(
            f"no method is called {config.method!r}", hint=f"choose one of: {', '.join(METHODS)}"
        )
    return METHODS[config.method](config)
