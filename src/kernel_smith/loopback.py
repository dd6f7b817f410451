"""Which addresses are this machine's own: nobody else hears what is said there."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Is this a name or an address of the machine itself?"""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
