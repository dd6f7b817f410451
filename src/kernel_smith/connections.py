"""Connections over HTTP: to the servers of models, and to evaluation services."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kernel_smith.loopback import is_loopback

if TYPE_CHECKING:
    import aiohttp

_CONNECT_SECONDS = 20.0


def open_connections(
    url: str, silence_seconds: float, headers: Mapping[str, str], most: int = 0
) -> aiohttp.ClientSession:
    """Open connections to a server, on the event loop that will use them.

    A request fails after so many seconds without a byte. `most`: at once; 0: without a limit.
    """
    import aiohttp  # when it is needed: most commands ask nobody

    parts = urlsplit(url)
    secure = _certificates() if parts.scheme == "https" else True
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=most, ssl=secure),
        timeout=aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(silence_seconds, _CONNECT_SECONDS),
            sock_read=silence_seconds,
        ),
        headers={"User-Agent": "kernel-smith", **headers},
        # A loopback address is never looked for behind a proxy.
        trust_env=not is_loopback(parts.hostname or ""),
    )


def why_unreachable(error: Exception) -> str:
    """Return the reason in the system's words: the library's repeat the address, and more."""
    number = getattr(error, "errno", None)
    if number and number > 0:
        return os.strerror(number)
    return getattr(error, "strerror", None) or str(error) or "timed out"  # no such host, say


def _certificates() -> ssl.SSLContext:
    """Those that the environment names, or Mozilla's: not every Python finds the system's."""
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())
