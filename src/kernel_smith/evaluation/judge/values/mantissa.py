"""Numbers with fewer bits of mantissa, as coarser arithmetic has them."""

from __future__ import annotations

from collections.abc import Callable

import torch


def round_mantissa(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """Round to `bits` explicit bits of mantissa, keeping the exponent's range."""
    return _with_mantissa(tensor, bits, torch.round)


def truncate_mantissa(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """The same, but leave the other bits out, as a GPU does when it multiplies TF32 numbers. The
    errors have one sign then, and add up."""
    return _with_mantissa(tensor, bits, torch.trunc)


def _with_mantissa(
    tensor: torch.Tensor, bits: int, whole: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    mantissa, exponent = torch.frexp(tensor)
    steps = float(1 << (bits + 1))
    return torch.ldexp(whole(mantissa * steps) / steps, exponent)
