"""A Ray cluster: how to reach it, which devices it has, and how to occupy one of them.

A process has one connection to Ray, whoever opened it. Engines share it, and the last one closes
it, unless somebody else had opened it before.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar
from urllib.parse import urlsplit

from kernel_smith.errors import BadInput, MissingPrerequisite

FORMS = "ray, ray://HOST:10001 or ray:HOST:6379"

_REACH_SECONDS = 5.0


@dataclass(frozen=True)
class Place:
    """A device: a GPU of a node, or a node without one."""

    node: str
    number: int
    gpu: bool
    host: str


class Connection:
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _users: ClassVar[int] = 0

    def __init__(self, address: str) -> None:
        if find_spec("ray") is None:
            raise MissingPrerequisite(
                "Ray is not installed", hint="pip install 'kernel-smith[ray]'"
            )
        import ray

        with Connection._lock:
            connected = ray.is_initialized()
            if not connected:
                _connect(_target(address))
            self._counts = not connected or Connection._users > 0
            Connection._users += self._counts

    def close(self) -> None:
        import ray

        with Connection._lock:
            Connection._users -= self._counts
            if self._counts and Connection._users == 0:
                ray.shutdown()
            self._counts = False


def check_connection() -> None:
    """Ray would start a cluster of its own when it is asked for something without a connection."""
    import ray

    if not ray.is_initialized():
        raise ConnectionError("the connection to Ray is lost")


def places(device: str | None) -> list[Place]:
    """The devices that are there now; `device`: an accelerator type or resource of their nodes."""
    import ray

    check_connection()
    found = []
    for node in ray.nodes():
        has = node["Resources"]
        if not node["Alive"]:
            continue
        if device is not None and not {device, f"accelerator_type:{device}"} & has.keys():
            continue
        gpus = int(has.get("GPU", 0))
        count = gpus or int(has.get("CPU", 0) >= 1)
        host = str(node["NodeManagerAddress"])
        found += [Place(node["NodeID"], number, gpus > 0, host) for number in range(count)]
    return found


def occupy(place: Place, address: str | None, lanes: int) -> Any:
    """An actor there. Ray starts it when the device is free, and shows it no other GPU."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    from kernel_smith.evaluation.engines.ray_actor import DeviceActor

    return (
        ray.remote(DeviceActor)
        .options(
            num_gpus=1 if place.gpu else 0,
            num_cpus=0 if place.gpu else 1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(place.node, soft=False),
            max_restarts=0,
            max_concurrency=lanes + 1,  # it must hear that it is to close
        )
        .remote(address, lanes)
    )


def why_unfit(place: Place, error: BaseException) -> MissingPrerequisite:
    """What to tell when no actor could be started there."""
    text = str(error)
    if "ModuleNotFoundError" in text or "ImportError" in text or "failed to import" in text:
        return MissingPrerequisite(
            f"kernel_smith cannot be imported on the Ray node {place.host} ({_last_line(text)})",
            hint="pip install 'kernel-smith[ray]' on every node, into the Python that runs "
            "`ray start` there",
        )
    return MissingPrerequisite(
        f"the Ray node {place.host} cannot evaluate ({_last_line(text)})",
        hint="look at its logs in /tmp/ray/session_latest/logs, or take it out of the cluster",
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def _target(address: str) -> str:
    """What Ray calls the cluster of this address."""
    if address.startswith("ray://"):
        target = address
    elif address.startswith("ray:"):
        target = address.removeprefix("ray:")
    else:
        target = os.environ.get("RAY_ADDRESS") or "auto"
    return _running_here() if target in ("auto", "local") else target


def _running_here() -> str:
    from ray._private.services import canonicalize_bootstrap_address_or_die

    try:
        return str(canonicalize_bootstrap_address_or_die("auto"))
    except ConnectionError as error:
        raise _no_cluster("on this machine", error) from None


def _connect(target: str) -> None:
    import ray

    _check_reachable(target)
    if target.startswith("ray://") and find_spec("grpc") is None:
        hint = "pip install 'ray[client]'"
        raise MissingPrerequisite("ray:// addresses need the Ray client", hint=hint)
    try:
        with _own_signals():
            ray.init(
                target,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
            )
    # Ray raises what it likes: ConnectionError, RuntimeError for other versions, and its own.
    except Exception as error:
        raise _no_cluster(f"at {target} that takes us", error) from error


def _check_reachable(target: str) -> None:
    """Ray would try for minutes, and not even notice signals meanwhile."""
    try:
        parsed = urlsplit(target if "://" in target else f"//{target}")
        host, port = parsed.hostname, parsed.port
    except ValueError:
        host = port = None
    if not host or not port:
        hint = f"name it by one of: {FORMS}"
        raise BadInput(f"{target!r} is not the address of a Ray cluster", hint=hint)
    try:
        socket.create_connection((host, port), _REACH_SECONDS).close()
    except OSError as error:
        raise _no_cluster(f"at {target}", error) from None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray answers SIGTERM its own way; whoever uses the engine keeps theirs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _no_cluster(where: str, error: Exception) -> MissingPrerequisite:
    return MissingPrerequisite(
        f"there is no Ray cluster {where} ({_last_line(str(error))})",
        hint="start one with `ray start --head`, or mend the address",
    )
