"""Engines by their addresses; and what is said about those that lead nowhere."""

from __future__ import annotations

import socket

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.engines import LocalPool, open_engine, ray_cluster
from kernel_smith.evaluation.engines.simulated import SimulatedEngine


def test_no_address_means_this_machine() -> None:
    with open_engine(None, 2) as engine:
        assert isinstance(engine, LocalPool)
        assert engine.capacity() == 2


@pytest.mark.parametrize("address", ["simulated:7", "simulated:7:0.25", "simulated:7:3"])
def test_simulated_devices(address: str) -> None:
    with open_engine(address) as engine:
        assert isinstance(engine, SimulatedEngine)
        assert engine.capacity() == 7


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost:8300", "ftp://host", "rays", "ray:", "ray:/", "ray//host:1"),
        *("simulated", "simulated:", "simulated:x", "simulated:3:", "simulated:3:-1"),
        *("simulated:3:nan", "simulated:\u0663", "raylet:1"),
    ],
)
def test_other_addresses_are_refused_with_a_list_of_those_that_work(address: str) -> None:
    with pytest.raises(BadInput, match="not the address of an engine") as refused:
        open_engine(address)
    for form in ("http://", "ray://HOST:10001", "ray:HOST:6379", "simulated:N:SECONDS"):
        assert form in refused.value.hint


def test_no_simulated_device_is_too_few() -> None:
    with pytest.raises(BadInput):
        open_engine("simulated:0")


def test_a_cluster_can_be_asked_for_a_device_and_nothing_else() -> None:
    for query in ("", "device=", "lanes=2", "device=a&device=b", "device=a&lanes=2"):
        with pytest.raises(BadInput, match="does not know"):
            open_engine(f"ray?{query}")


def test_without_ray_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "find_spec", lambda name: None)
    with pytest.raises(MissingPrerequisite, match="not installed") as told:
        open_engine("ray")
    assert told.value.hint == "pip install 'kernel-smith[ray]'"


@pytest.mark.parametrize("form", ["ray:127.0.0.1:{}", "ray://127.0.0.1:{}", "ray"])
def test_where_no_cluster_is_this_is_told_at_once(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]  # nobody listens there in a moment
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with pytest.raises(MissingPrerequisite, match="no Ray cluster") as told:
        open_engine(form.format(port))
    assert "ray start --head" in told.value.hint


def test_a_cluster_without_a_port_is_no_address() -> None:
    pytest.importorskip("ray")
    with pytest.raises(BadInput, match="not the address of a Ray cluster"):
        open_engine("ray:somewhere")
