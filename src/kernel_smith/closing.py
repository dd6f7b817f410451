"""Things that are closed at the end of a `with` statement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class ClosingInAHurry(Closing):
    """Finishes what was begun, unless it is left by an exception: nobody will read the answers."""

    @abstractmethod
    def _close(self, hurry: bool) -> None: ...

    def close(self) -> None:
        """Finish what was begun; what still waits is cancelled."""
        self._close(hurry=False)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close(hurry=error is not None)
