"""kernel-smith: an evolutionary optimizer for compute kernels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_smith.api import Optimized, evaluate, load, optimize, seed

__version__ = "0.1.0"
_OF_API = ("Optimized", "evaluate", "load", "optimize", "seed")
__all__ = ["Optimized", "__version__", "evaluate", "load", "optimize", "seed"]


def __getattr__(name: str) -> Any:
    """Import what is asked for, and no more: most who import this want a part of it."""
    if name in _OF_API:
        return getattr(import_module("kernel_smith.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
