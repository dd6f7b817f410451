"""kernel-smith: an evolutionary optimizer for compute kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_smith.api import Optimized, optimize

__version__ = "0.1.0"
__all__ = ["Optimized", "__version__", "optimize"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no more: most who import this want a part of it."""
    if name in ("Optimized", "optimize"):
        return getattr(import_module("kernel_smith.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
