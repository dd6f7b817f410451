"""Parameters away from what constructors fill them with.

A new adapter's second matrix is zero, and a new norm multiplies by one: whoever leaves them out is
right until somebody loads trained weights. So parameters that hold one value are drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

_AT_FIRST = 1024  # elements that are looked at before all are
_NOTICEABLE = 0.05  # what is smaller is as good as zero, such as the scale of a new layer
_SPREAD = 0.3  # around zero
_STATISTICS = ("running_mean", "running_var")


def unsettle(model: torch.nn.Module, seed: int) -> list[str]:
    """Change constant parameters and statistics in place; return their names."""
    generator = torch.Generator().manual_seed(seed)
    changed = []
    for name, tensor in _learned(model):
        if tensor.is_floating_point() and _is_constant(tensor):
            tensor.copy_(_drawn_around(float(tensor.flatten()[0]), tensor.shape, generator))
            changed.append(name)
    return changed


def _learned(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in model.named_parameters():
        yield name, parameter.detach()
    for name, buffer in model.named_buffers():
        if name.rpartition(".")[2] in _STATISTICS:
            yield name, buffer


def _is_constant(tensor: torch.Tensor) -> bool:
    if tensor.numel() == 0:
        return False
    flat = tensor.flatten()
    some = flat[:_AT_FIRST]
    return (
        bool((some == flat[0]).all()) and bool(flat[0].isfinite()) and bool((flat == flat[0]).all())
    )


def _drawn_around(value: float, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    if abs(value) >= _NOTICEABLE:  # a variance stays positive
        return value * (0.5 + torch.rand(shape, generator=generator))
    spread = _SPREAD / math.sqrt(math.prod(shape[1:]))
    return value + spread * torch.randn(shape, generator=generator)
