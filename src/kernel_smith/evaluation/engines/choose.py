"""The engine that somebody names: a service by its address, or this machine."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.engines.pool import LocalPool

TOKEN_VARIABLE = "KERNEL_SMITH_TOKEN"


def open_engine(address: str | None, lanes: int = 1) -> AbstractContextManager[Engine]:
    """To be used in a `with` statement. `lanes` are those of this machine; a service has its own.

    The token for a service comes from the environment: command lines can be read by others.
    """
    if address is None:
        return LocalPool(lanes)
    from kernel_smith.evaluation.engines.remote import RemoteEngine

    engine = RemoteEngine(address, os.environ.get(TOKEN_VARIABLE) or None)
    try:
        engine.health()  # later it is patient; an address that is wrong is better told at once
    except BaseException:
        engine.close()
        raise
    return engine
