"""The one convention for compiled dialects: kernel text in, callable library out.

A candidate writes `kernels = cpp(SOURCE)` and calls `kernels.name(tensor, number)`. Who compiles is
settled by the provider: the evaluator installs its own, everywhere else the text is compiled here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_smith.inline.library import Library
from kernel_smith.inline.signature import prototypes

__all__ = ["CompileError", "Library", "Provider", "cpp", "set_provider"]

Provider = Callable[[str, str, tuple[str, ...]], str]
"""Takes the dialect, the source and the flags; gives the path of the compiled library."""


class CompileError(RuntimeError):
    """A kernel that the compiler rejects; `log` holds its messages."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(f"{message}\n{log}")
        self.log = log


def cpp(source: str, flags: Sequence[str] = ()) -> Library:
    """Compile C++ text; each `extern "C"` function of it is an attribute of the result."""
    if not isinstance(source, str):
        raise TypeError(f"source must be the text of a kernel, got {type(source).__name__}")
    if isinstance(flags, str):
        raise TypeError(f"flags must be a sequence of strings, e.g. ({flags!r},)")
    return Library(_provider("cpp", source, tuple(flags)), prototypes(source))


def set_provider(provider: Provider | None) -> None:
    """Let another function compile from now on; None brings back the local compiler."""
    global _provider
    _provider = provider or _build_locally


def _build_locally(dialect: str, source: str, flags: tuple[str, ...]) -> str:
    # Imported here because a candidate process of the evaluator never compiles.
    from kernel_smith.inline.local import build_locally

    return build_locally(dialect, source, flags)


_provider: Provider = _build_locally
