"""A confined process has no network."""

from __future__ import annotations

import errno
import socket

import pytest

from kernel_smith.evaluation.sandbox.confine import landlock, namespaces, seccomp

FAMILIES = (
    *(socket.AF_INET, socket.AF_INET6, socket.AF_UNIX),
    *(socket.AF_NETLINK, socket.AF_PACKET),
)


def error_of(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_socket_of_any_family_can_be_made(confined, family):
    def attempt():
        return error_of(lambda: socket.socket(family, socket.SOCK_DGRAM))

    assert confined.value(attempt, seccomp.FEATURE) == errno.EACCES


def test_a_connected_pair_of_sockets_can_be_made(confined):
    def attempt():
        left, right = socket.socketpair()
        left.sendall(b"hello")
        return right.recv(5).decode()

    assert confined.value(attempt, seccomp.FEATURE) == "hello"


def test_a_pair_of_datagram_sockets_is_refused_because_it_could_address_others(confined):
    def attempt():
        return error_of(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))

    assert confined.value(attempt, seccomp.FEATURE) == errno.EACCES


def test_without_the_filter_no_host_can_be_reached(confined, refuse):
    refuse("seccomp")

    def attempt():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            return error_of(lambda: probe.connect(("192.0.2.1", 9)))

    assert confined.value(attempt, namespaces.NETWORK) == errno.ENETUNREACH


def test_without_filter_and_rules_a_listener_on_the_host_cannot_be_reached(
    confined, refuse, listener
):
    refuse("seccomp", "landlock_create_ruleset")

    address = listener.getsockname()

    def attempt():
        with socket.socket() as probe:
            return error_of(lambda: probe.connect(address))

    assert confined.value(attempt, namespaces.NETWORK) == errno.ENETUNREACH


def test_without_namespace_and_filter_rules_refuse_tcp(confined, refuse, listener):
    refuse("seccomp", "unshare")
    address = listener.getsockname()

    def attempt():
        with socket.socket() as probe:
            return error_of(lambda: probe.connect(address))

    assert confined.value(attempt, landlock.FILES, landlock.TCP) == errno.EACCES


def test_without_the_filter_abstract_sockets_of_the_host_cannot_be_reached(confined, refuse):
    refuse("seccomp")
    name = b"\0kernel-smith-test"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()

        def attempt():
            with socket.socket(socket.AF_UNIX) as probe:
                return error_of(lambda: probe.connect(name))

        assert confined.value(attempt, namespaces.NETWORK) == errno.ECONNREFUSED
