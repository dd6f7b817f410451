"""The engine that somebody names by an address."""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from urllib.parse import parse_qs

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.engines.pool import LocalPool

TOKEN_VARIABLE = "KERNEL_SMITH_TOKEN"

_HTTP = re.compile(r"https?://", re.IGNORECASE)
_RAY = re.compile(r"(ray|ray://[^?]+|ray:[^/?][^?]*)(?:\?(.*))?")
_SIMULATED = re.compile(r"simulated:(\d+)(?::(\d+(?:\.\d*)?|\.\d+))?", re.ASCII)
_FORMS = (
    "http://HOST:8300 (a service); ray, ray://HOST:10001 or ray:HOST:6379 (a Ray cluster, with "
    "?device=NAME only such nodes of it); simulated:N or simulated:N:SECONDS (devices that pretend)"
)


def open_engine(
    address: str | None, lanes: int = 1, patience: float | None = None
) -> AbstractContextManager[Engine]:
    """To be used in a `with` statement. None: this machine, with as many lanes.

    Each device of a Ray cluster has as many lanes, too; a service has its own. `patience` is for
    this machine: the seconds that one evaluation may take.
    """
    if address is None:
        return LocalPool(lanes, patience=patience)
    if _HTTP.match(address):
        return _open_service(address)
    if found := _RAY.fullmatch(address):
        from kernel_smith.evaluation.engines.ray_engine import RayEngine

        return RayEngine(found[1], lanes=lanes, device=_device(address, found[2]))
    if found := _SIMULATED.fullmatch(address):
        from kernel_smith.evaluation.engines.simulated import SimulatedEngine

        return SimulatedEngine(int(found[1]), float(found[2] or 0.5))
    raise BadInput(f"{address!r} is not the address of an engine", hint=f"give one of: {_FORMS}")


def _open_service(address: str) -> AbstractContextManager[Engine]:
    """The token comes from the environment: command lines can be read by others."""
    from kernel_smith.evaluation.engines.remote import RemoteEngine

    engine = RemoteEngine(address, os.environ.get(TOKEN_VARIABLE) or None)
    try:
        engine.health()  # later it is patient; an address that is wrong is better told at once
    except BaseException:
        engine.close()
        raise
    return engine


def _device(address: str, query: str | None) -> str | None:
    if query is None:
        return None
    asked = parse_qs(query)
    if set(asked) != {"device"} or len(asked["device"]) != 1:
        hint = "write ?device=NAME, or nothing, after the address"
        raise BadInput(f"{address!r} asks a Ray cluster for what it does not know", hint=hint)
    return asked["device"][0]
