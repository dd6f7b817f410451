"""torch.compile inside a baseline's process on a GPU: when others may have the device.

To compile takes many seconds, and the device has nothing to do for most of them. The judge hears
when that begins and ends. Where the compiler tries kernels out, to choose among them, it is told
the opposite meanwhile: a choice that was disturbed would be a weaker baseline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kernel_smith.evaluation.sandbox.triton_tools import COMPILED, COMPILING, Tell


def announce_compiling(tell: Tell) -> None:
    """Have this process's torch.compile say when it compiles. To import it takes seconds, too."""
    tell(COMPILING)
    from torch._dynamo import convert_frame
    from torch._inductor.select_algorithm import AlgorithmSelectorCache

    tell(COMPILED)
    _surround(convert_frame, "_compile", tell, COMPILING, COMPILED)
    _surround(AlgorithmSelectorCache, "benchmark_choices", tell, COMPILED, COMPILING)


def _surround(where: Any, name: str, tell: Tell, before: str, after: str) -> None:
    """Versions of PyTorch that know no such function compile unannounced."""
    work: Callable[..., Any] | None = getattr(where, name, None)
    if work is None:
        return

    @functools.wraps(work)
    def announced(*arguments: Any, **options: Any) -> Any:
        tell(before)
        try:
            return work(*arguments, **options)
        finally:
            tell(after)

    # A class's own functions have been looked up by now, with all that they are bound to.
    setattr(where, name, staticmethod(announced) if isinstance(where, type) else announced)
