"""Kernels of our own for what compilers leave to a library, as texts that seeds carry."""

from __future__ import annotations

from importlib.resources import files


def template(name: str) -> str:
    """Return the text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
