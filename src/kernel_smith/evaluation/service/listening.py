"""An address to listen on, taken before a server starts, so that its errors are ours to explain."""

from __future__ import annotations

import socket

from kernel_smith.errors import BadInput

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Take an address; port 0 is any that is free. Raises `BadInput` if it cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(BACKLOG)  # whoever learns the address now may connect at once
        except BaseException:
            bound.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:  # the last of a name that none can have
        what = f"cannot listen on {host} port {port} ({getattr(error, 'strerror', None) or error})"
        raise BadInput(what, hint="choose another --port (0: any free one), or --host") from None
    return bound


def url_of(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
