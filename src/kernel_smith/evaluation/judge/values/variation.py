"""What an output would be without its inputs, and how far the inputs move it from there.

Some outputs are nearly the same whatever goes in, such as the logits of a network with random
weights. What a kernel computes shows in how they vary, not in how large they are.
"""

from __future__ import annotations

import torch

_FEW_ELEMENTS = 8


def larger_half(tensor: torch.Tensor) -> torch.Tensor:
    """Zero where the answer is small: a few huge elements must not excuse all the others."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return torch.zeros_like(tensor)
    sizes = tensor.abs() if tensor.dtype.itemsize > 1 else tensor.float().abs()
    counted = sizes[sizes > 0]
    if counted.numel() < _FEW_ELEMENTS:
        return torch.zeros_like(tensor)
    return torch.where(sizes > counted.median(), tensor, torch.zeros_like(tensor))


def flat_mean(tensor: torch.Tensor) -> torch.Tensor:
    """The mean everywhere; a single element has no other mean than itself, so take none."""
    if tensor.numel() < 2:
        return torch.zeros_like(tensor)
    return torch.full_like(tensor, _wide(tensor).mean().to(tensor.dtype).item())


def mean_over_draws(answers: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """What someone who knows the distribution but not the inputs would answer."""
    means = []
    for same in zip(*answers, strict=True):
        if len({t.shape for t in same}) > 1:
            means.append(torch.zeros_like(same[0]))
        else:
            means.append(torch.stack([_wide(t) for t in same]).mean(0).to(same[0].dtype))
    return means


def spread_of(answers: list[list[torch.Tensor]]) -> list[float]:
    """Per output the standard deviation, between elements or between draws, if that is less."""
    spreads = []
    for same in zip(*answers, strict=True):
        if not same[0].is_floating_point() or len({t.shape for t in same}) > 1:
            spreads.append(0.0)
            continue
        wide = torch.stack([_wide(t) for t in same])
        between_draws = float(wide.var(dim=0, correction=1).mean().sqrt())
        between_elements = float(wide[0].std(correction=0)) if wide[0].numel() > 1 else float("inf")
        spreads.append(min(between_draws, between_elements))
    return spreads


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
