"""What was enforced and what could not be: the report, and the ledger that it is written in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    enforced: tuple[str, ...] = ()
    """Names of features."""
    missing: tuple[str, ...] = ()
    """`feature: what is therefore not enforced (why the feature is missing)`."""

    def __add__(self, other: Report) -> Report:
        return Report(self.enforced + other.enforced, self.missing + other.missing)


class Unavailable(OSError):
    """A feature cannot be had because something it needs is missing."""


class Ledger:
    """Collects the outcome of each attempt, so that a refused feature never ends the others."""

    def __init__(self) -> None:
        self._enforced: list[str] = []
        self._missing: list[str] = []

    def attempt(self, feature: str, action: Callable[[], object], *, otherwise: str) -> bool:
        """Do `action`; if the system refuses, note what is not enforced. Was it done?"""
        try:
            action()
        except (OSError, ValueError) as refusal:
            self.lacks(feature, otherwise, because=_why(refusal))
            return False
        self.has(feature)
        return True

    def has(self, feature: str) -> None:
        self._enforced.append(feature)

    def lacks(self, feature: str, otherwise: str, *, because: str) -> None:
        self._missing.append(f"{feature}: {otherwise} ({because})")

    def report(self) -> Report:
        return Report(tuple(self._enforced), tuple(self._missing))


def _why(refusal: OSError | ValueError) -> str:
    if isinstance(refusal, OSError) and refusal.strerror:
        return refusal.strerror
    return str(refusal)
