"""A Ray cluster of real processes on this machine, for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ray.cluster_utils import Cluster

LONG = 300.0  # seconds; nothing here takes that long

_SMALL = {"object_store_memory": 80 << 20}


class Nodes:
    """A head that evaluates nothing, and the nodes that are added."""

    def __init__(self) -> None:
        # Nor does it look after machines to rent, or collect what is printed.
        without = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
        head = {"num_cpus": 0, **without, **_SMALL}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)

    @property
    def address(self) -> str:
        return f"ray:{self._cluster.address}"

    def add(self, kind: str, **more: Any) -> Any:
        """A node with this custom resource, so that tests can ask for it."""
        return self._cluster.add_node(num_cpus=1, resources={kind: 1}, **_SMALL, **more)

    def kill(self, node: Any) -> None:
        self._cluster.remove_node(node, allow_graceful=False)

    def shutdown(self) -> None:
        self._cluster.shutdown()


@contextmanager
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    try:
        yield made
    finally:
        made.shutdown()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
