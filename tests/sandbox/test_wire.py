"""Messages arrive whole with their descriptors; whatever is no message is an error, not a crash."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.evaluation.sandbox import wire
from kernel_smith.evaluation.sandbox.wire import (
    MAX_MESSAGE,
    Channel,
    WireClosed,
    WireError,
    WireTimeout,
)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
messages = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    left, right = Channel.pair()
    yield left, right
    left.close()
    right.close()


@pytest.fixture
def raw() -> Iterator[tuple[socket.socket, Channel]]:
    """A peer that writes whatever bytes it likes."""
    left, right = socket.socketpair()
    channel = Channel(right)
    yield left, channel
    left.close()
    channel.close()


def framed(payload: bytes) -> bytes:
    return struct.pack("<I", len(payload)) + payload


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def in_background(function: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


@given(st.lists(messages, min_size=1, max_size=4))
def test_messages_arrive_as_sent_and_in_order(sent: list[dict[str, Any]]) -> None:
    left, right = Channel.pair()
    for message in sent:
        left.send(message)
    assert [right.receive(1) for _ in sent] == sent
    left.close()
    right.close()


@given(st.binary(max_size=64))
@settings(max_examples=200)
def test_arbitrary_bytes_are_a_message_or_a_wire_error(data: bytes) -> None:
    left, right = socket.socketpair()
    channel = Channel(right)
    left.sendall(data)
    left.close()
    try:
        while True:
            assert isinstance(channel.receive(1), dict)
    except WireError:
        pass
    finally:
        channel.close()


def test_a_message_larger_than_the_socket_buffer_arrives(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    message = {"log": "x" * (3 << 20)}
    sender = in_background(lambda: left.send(message))
    assert right.receive(30) == message
    sender.join()


def test_descriptors_travel_with_their_message(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    reading, writing = os.pipe()
    left.send({"op": "first"})
    left.send({"op": "map"}, (reading, writing))
    os.close(reading)
    os.close(writing)
    assert right.receive_with_fds(1) == ({"op": "first"}, [])
    message, (far_reading, far_writing) = right.receive_with_fds(1)
    assert message == {"op": "map"}
    os.write(far_writing, b"through")
    assert os.read(far_reading, 7) == b"through"
    os.close(far_reading)
    os.close(far_writing)


def test_descriptors_travel_with_a_large_message(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    reading, writing = os.pipe()
    message = {"log": "x" * (2 << 20)}
    sender = in_background(lambda: left.send(message, (reading, writing)))
    arrived, fds = right.receive_with_fds(30)
    sender.join()
    assert (arrived, len(fds)) == (message, 2)
    for fd in (reading, writing, *fds):
        os.close(fd)


def test_received_descriptors_are_not_inherited_by_programs(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    left.send({}, (0,))
    _, (fd,) = right.receive_with_fds(1)
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_descriptors_that_nobody_asked_for_are_closed(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    before = open_descriptors()
    left.send({"op": "surprise"}, (0, 1, 2))
    assert right.receive(1) == {"op": "surprise"}
    assert open_descriptors() == before


@pytest.mark.parametrize(
    "payload", [b"{", b"[1]", b"\xff\xfe", struct.pack("<I", MAX_MESSAGE + 1)], ids=repr
)
def test_descriptors_of_a_bad_message_are_closed(
    raw: tuple[socket.socket, Channel], payload: bytes
) -> None:
    peer, channel = raw
    before = open_descriptors()
    data = payload if len(payload) == 4 else framed(payload)
    socket.send_fds(peer, [data], [0, 1, 2])
    with pytest.raises(WireError):
        channel.receive(1)
    assert open_descriptors() == before


def test_descriptors_of_half_a_message_are_closed(raw: tuple[socket.socket, Channel]) -> None:
    peer, channel = raw
    before = open_descriptors()
    socket.send_fds(peer, [framed(b"{}")[:5]], [0, 1, 2])
    with pytest.raises(WireTimeout):
        channel.receive(0.01)
    assert open_descriptors() == before


def test_a_flood_of_descriptors_is_refused(raw: tuple[socket.socket, Channel]) -> None:
    """Else one message could take all that the judge's process may open."""
    peer, channel = raw
    before = open_descriptors()
    for byte in framed(b'{"op":"flood"}'):
        socket.send_fds(peer, [bytes([byte])], [0] * 8)
    with pytest.raises(WireError, match="descriptors"):
        channel.receive_with_fds(1)
    assert open_descriptors() == before


def test_an_oversize_message_is_refused_before_it_is_read(
    raw: tuple[socket.socket, Channel],
) -> None:
    peer, channel = raw
    peer.sendall(struct.pack("<I", MAX_MESSAGE + 1))
    with pytest.raises(WireError, match="exceeds"):
        channel.receive(1)


def test_the_largest_message_is_not_refused(raw: tuple[socket.socket, Channel]) -> None:
    peer, channel = raw
    payload = b'{"a":"' + b"x" * (MAX_MESSAGE - 8) + b'"}'
    assert len(payload) == MAX_MESSAGE
    sender = in_background(lambda: peer.sendall(framed(payload)))
    assert len(channel.receive(60)["a"]) == MAX_MESSAGE - 8
    sender.join()


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"nothing",
        b'{"a":1}}',
        b"\xff",
        b'"text"',
        b"[]",
        b"3",
        b"null",
        b"[" * 20_000,
        b'{"a":' * 20_000,
        b"1" * 5000,
        b'{"a":' + b"1" * 5000 + b"}",
    ],
    ids=lambda payload: repr(payload[:12]),
)
def test_what_is_not_a_json_object_is_a_wire_error(
    raw: tuple[socket.socket, Channel], payload: bytes
) -> None:
    peer, channel = raw
    peer.sendall(framed(payload))
    with pytest.raises(WireError):
        channel.receive(1)


@pytest.mark.parametrize("cut", [1, 3, 4, 9])
def test_half_a_message_and_then_silence_is_a_timeout(
    raw: tuple[socket.socket, Channel], cut: int
) -> None:
    peer, channel = raw
    peer.sendall(framed(json.dumps({"op": "go"}).encode())[:cut])
    with pytest.raises(WireTimeout):
        channel.receive(0.02)


@pytest.mark.parametrize("cut", [0, 1, 4, 9])
def test_a_peer_that_is_gone_is_told_from_a_slow_one(
    raw: tuple[socket.socket, Channel], cut: int
) -> None:
    peer, channel = raw
    peer.sendall(framed(json.dumps({"op": "go"}).encode())[:cut])
    peer.close()
    with pytest.raises(WireClosed):
        channel.receive(1)


def test_a_message_in_many_pieces_is_put_together(raw: tuple[socket.socket, Channel]) -> None:
    peer, channel = raw
    data = framed(json.dumps({"op": "go", "calls": 3}).encode())

    def trickle() -> None:
        for byte in data:
            peer.sendall(bytes([byte]))

    sender = in_background(trickle)
    assert channel.receive(10) == {"op": "go", "calls": 3}
    sender.join()


def test_a_dripping_peer_cannot_stretch_the_timeout(raw: tuple[socket.socket, Channel]) -> None:
    peer, channel = raw
    stop = threading.Event()

    def drip() -> None:
        peer.sendall(struct.pack("<I", 1 << 20))
        while not stop.wait(0.005):
            peer.sendall(b" ")

    sender = in_background(drip)
    with pytest.raises(WireTimeout):
        channel.receive(0.1)
    stop.set()
    sender.join()


def test_sending_to_a_closed_peer_is_wire_closed(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    right.close()
    with pytest.raises(WireClosed):
        left.send({"op": "go"})
    with pytest.raises(WireClosed):
        left.send({"op": "go"}, (0,))


def test_a_peer_that_does_not_read_cannot_block_the_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "_SEND_TIMEOUT", struct.pack("ll", 0, 50_000))
    left, right = Channel.pair()
    with pytest.raises(WireTimeout):
        left.send({"log": "x" * (4 << 20)})
    left.close()
    right.close()


def test_channels_can_be_rebuilt_from_a_descriptor(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    again = Channel.from_fd(os.dup(right.fileno()))
    left.send({"op": "go"})
    assert again.receive(1) == {"op": "go"}
    again.close()
