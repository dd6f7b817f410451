"""The one convention for compiled dialects: kernel text in, callable library out.

A candidate writes `kernels = cpp(SOURCE)`, or `cuda`, `maca` or `hip` in place of `cpp`, and calls
`kernels.name(tensor, number)`. For dialects that other packages bring there is `compiled`. Who
compiles is settled by the provider: the evaluator installs its own, everywhere else the text is
compiled here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_smith.inline.library import Device, Library
from kernel_smith.inline.signature import declarations, prototypes

__all__ = [
    "CompileError",
    "Library",
    "Provider",
    "compiled",
    "cpp",
    "cuda",
    "hip",
    "maca",
    "set_provider",
]

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


def compiled(
    dialect: str, source: str, flags: Sequence[str] = (), *, functions: str = ""
) -> Library:
    """Compile text of a dialect that an installed backend offers.

    `functions` declares in C what can be called: `void scale(const float* x, float* y, int64_t n);`
    Without it, that is read from the source, as if it were C++.
    """
    return _library(dialect, source, flags, functions)


def set_provider(provider: Provider | None, device: Device = "cuda") -> None:
    """Let another function compile from now on; None brings back the local compiler.

    `device` is where the provider's libraries of GPU dialects find their tensors: `cpu` if it
    builds them by the route `cpu`.
    """
    global _provider, _device
    _provider = provider or _build_locally
    _device = device if provider else None


def _library(dialect: str, source: str, flags: Sequence[str], functions: str = "") -> Library:
    if not isinstance(source, str):
        raise TypeError(f"source must be the text of a kernel, got {type(source).__name__}")
    if isinstance(flags, str):
        raise TypeError(f"flags must be a sequence of strings, e.g. ({flags!r},)")
    path = _provider(dialect, source, tuple(flags))
    callable_ones = declarations(functions) if functions else prototypes(source)
    return Library(path, callable_ones, _device_of(dialect))


def _device_of(dialect: str) -> Device:
    if dialect == "cpp":
        return "cpu"
    if _device is not None:
        return _device
    from kernel_smith.inline.dialects import recipe
    from kernel_smith.inline.local import route_here

    runs_on_gpu = route_here(dialect) != "cpu" and recipe(dialect).architecture
    return "cuda" if runs_on_gpu else "cpu"


def _build_locally(dialect: str, source: str, flags: tuple[str, ...]) -> str:
    # Imported here because a candidate process of the evaluator never compiles.
    from kernel_smith.inline.local import build_locally

    return build_locally(dialect, source, flags)


_provider: Provider = _build_locally
_device: Device | None = None
