"""Names of files, which are bytes of any kind, as text that can be written down."""

from __future__ import annotations


def in_letters(name: str) -> str:
    """Replace what of a name is no text, or would do something to a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
