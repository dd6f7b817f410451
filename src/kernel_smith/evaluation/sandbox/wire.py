"""Messages between the judge and its child processes: JSON with a length, and file descriptors.

The judge reads what untrusted code may have written, so nothing is unpickled on its side, sizes are
bounded, and whatever does not parse is a `WireError`, never a crash.
"""

from __future__ import annotations

import array
import json
import os
import select
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("<I")
_MAX_FDS = 8
_SEND_TIMEOUT = struct.pack("ll", 10, 0)  # seconds and microseconds, as the kernel wants them
MAX_MESSAGE = 16 << 20


class WireError(Exception):
    """The other side sent something that is not a message."""


class WireClosed(WireError):
    """The other side is gone."""


class WireTimeout(WireError):
    """The other side did not answer in time."""


class Channel:
    """One end of a stream socket that carries JSON objects."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sock.setblocking(True)
        # Someone who never reads must not hold up the writer for ever.
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SEND_TIMEOUT)

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(left), cls(right)

    @classmethod
    def from_fd(cls, fd: int) -> Channel:
        return cls(socket.socket(fileno=fd))

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def send(self, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        payload = json.dumps(message, separators=(",", ":")).encode()
        data = memoryview(_LENGTH.pack(len(payload)) + payload)
        while data:
            try:
                sent = socket.send_fds(self._sock, [data], fds)
            except BlockingIOError as error:
                raise WireTimeout("nobody reads") from error
            except OSError as error:
                raise WireClosed(str(error)) from error
            data, fds = data[sent:], ()

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        message, fds = self.receive_with_fds(timeout)
        for fd in fds:
            os.close(fd)
        return message

    def receive_with_fds(self, timeout: float | None = None) -> tuple[dict[str, Any], list[int]]:
        deadline = None if timeout is None else time.monotonic() + timeout
        fds: list[int] = []
        try:
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size, deadline, fds))
            if length > MAX_MESSAGE:
                raise WireError(f"message of {length} bytes exceeds the limit of {MAX_MESSAGE}")
            return _parse(self._read(length, deadline, fds)), fds
        except WireError:
            # Descriptors of bad messages must not pile up in the process that receives them.
            for fd in fds:
                os.close(fd)
            raise

    def _read(self, count: int, deadline: float | None, fds: list[int]) -> bytes:
        """Exactly `count` bytes; descriptors that come with them are added to `fds`."""
        chunks = bytearray()
        while len(chunks) < count:
            self._wait(deadline)
            try:
                data, ancillary, _, _ = self._sock.recvmsg(
                    min(count - len(chunks), 1 << 20),
                    socket.CMSG_LEN(_MAX_FDS * 4),
                    socket.MSG_CMSG_CLOEXEC,
                )
            except OSError as error:
                raise WireClosed(str(error)) from error
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(content[: len(content) - len(content) % received.itemsize])
                    fds.extend(received)
            if len(fds) > _MAX_FDS:
                raise WireError(f"more than {_MAX_FDS} descriptors with one message")
            if not data:
                raise WireClosed("end of stream")
            chunks += data
        return bytes(chunks)

    def _wait(self, deadline: float | None) -> None:
        if deadline is None:
            return
        remaining = deadline - time.monotonic()
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        if remaining <= 0 or not poller.poll(remaining * 1000):
            raise WireTimeout("no answer in time")


def _parse(payload: bytes) -> dict[str, Any]:
    try:
        message = json.loads(payload)
    except ValueError as error:
        raise WireError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise WireError("JSON nested too deeply") from error
    if not isinstance(message, dict):
        raise WireError(f"expected an object, got {type(message).__name__}")
    return message
