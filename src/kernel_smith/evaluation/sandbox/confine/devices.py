"""The device files of NVIDIA GPUs, which a process that computes on one must be able to use."""

from __future__ import annotations

from pathlib import Path

_PATTERNS = ("nvidia*", "nvidia-caps/*")


def nodes() -> tuple[Path, ...]:
    """All that exist here; empty on a machine without such a device."""
    found = (node for pattern in _PATTERNS for node in Path("/dev").glob(pattern))
    return tuple(sorted(node for node in found if node.is_char_device()))
