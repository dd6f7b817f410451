"""The one convention for compiled dialects: kernel text in, callable library out.

A candidate writes `kernels = cpp(SOURCE)`, or `cuda`, `maca` or `hip` in place of `cpp`, and calls
`kernels.name(tensor, number)`. Who compiles is settled by the provider: the evaluator installs its
own, everywhere else the text is compiled here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_smith.inline.library import Device, Library
from kernel_smith.inline.signature import prototypes

__all__ = ["CompileError", "Library", "Provider", "cpp", "cuda", "hip", "maca", "set_provider"]

Provider = Callable[[str, str, tuple[str, ...]], str]
"""Takes the dialect, the source and the flags; gives the path of the compiled library."""


class CompileError(RuntimeError):
    """A kernel that the compiler rejects; `log` holds its messages."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(f"{message}\n{log}")
        self.log = log


def cpp(source: str, flags: Sequence[str] = ()) -> Library:
    """Compile C++ text; each `extern "C"` function of it is an attribute of the result."""
    return _library("cpp", source, flags)


def cuda(source: str, flags: Sequence[str] = ()) -> Library:
    """Compile CUDA C++ text; its `extern "C"` functions launch kernels on tensors on the GPU."""
    return _library("cuda", source, flags)


def maca(source: str, flags: Sequence[str] = ()) -> Library:
    """Compile MACA text, for MetaX GPUs; its `extern "C"` functions launch kernels."""
    return _library("maca", source, flags)


def hip(source: str, flags: Sequence[str] = ()) -> Library:
    """Compile HIP text, for AMD GPUs; its `extern "C"` functions launch kernels."""
    return _library("hip", source, flags)


def set_provider(provider: Provider | None, device: Device = "cuda") -> None:
    """Let another function compile from now on; None brings back the local compiler.

    `device` is where the provider's libraries of GPU dialects find their tensors: `cpu` if it
    builds them by the route `cpu`.
    """
    global _provider, _device
    _provider = provider or _build_locally
    _device = device if provider else None


def _library(dialect: str, source: str, flags: Sequence[str]) -> Library:
    if not isinstance(source, str):
        raise TypeError(f"source must be the text of a kernel, got {type(source).__name__}")
    if isinstance(flags, str):
        raise TypeError(f"flags must be a sequence of strings, e.g. ({flags!r},)")
    path = _provider(dialect, source, tuple(flags))
    return Library(path, prototypes(source), "cpu" if dialect == "cpp" else _gpu_device(dialect))


def _gpu_device(dialect: str) -> Device:
    if _device is not None:
        return _device
    from kernel_smith.inline.local import route_here

    return "cpu" if route_here(dialect) == "cpu" else "cuda"


def _build_locally(dialect: str, source: str, flags: tuple[str, ...]) -> str:
    # Imported here because a candidate process of the evaluator never compiles.
    from kernel_smith.inline.local import build_locally

    return build_locally(dialect, source, flags)


_provider: Provider = _build_locally
_device: Device | None = None
