"""What an output would be without its inputs, and how far the inputs move it from there.

Some outputs are nearly the same whatever goes in, such as the logits of a network with random
weights. What a kernel computes shows in how they vary, not in how large they are.
"""

from __future__ import annotations

import torch

from kernel_smith.evaluation.judge.values.pieces import pieces

_FEW_ELEMENTS = 8
_SAMPLED = 1 << 20  # elements that stand for all of a large output


def larger_half(tensor: torch.Tensor) -> torch.Tensor:
    """Zero where the answer is small: a few huge elements must not excuse all the others."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return torch.zeros_like(tensor)
    some = _sizes(_sample(tensor))
    counted = some[some > 0]
    if counted.numel() < _FEW_ELEMENTS:
        return torch.zeros_like(tensor)
    middle, half = counted.median(), tensor.clone()
    for _, (part,) in pieces(half):
        part.copy_(torch.where(_sizes(part) > middle, part, torch.zeros_like(part)))
    return half


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() <= _SAMPLED:
        return tensor
    return tensor.flatten()[torch.randint(tensor.numel(), (_SAMPLED,), device=tensor.device)]


def _sizes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.abs() if tensor.dtype.itemsize > 1 else tensor.float().abs()


def flat_mean(tensor: torch.Tensor) -> torch.Tensor:
    """The mean everywhere; a single element has no other mean than itself, so take none."""
    if tensor.numel() < 2:
        return torch.zeros_like(tensor)
    total = torch.stack([_wide(part).sum() for _, (part,) in pieces(tensor)]).sum()
    return torch.full_like(tensor, (total / tensor.numel()).to(tensor.dtype).item())


def mean_over_draws(answers: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """What someone who knows the distribution but not the inputs would answer."""
    means = []
    for same in zip(*answers, strict=True):
        mean = torch.zeros_like(same[0])
        if len({t.shape for t in same}) == 1:
            for _, (target, *parts) in pieces(mean, *same):
                target.copy_(torch.stack([_wide(t) for t in parts]).mean(0))
        means.append(mean)
    return means


def spread_of(answers: list[list[torch.Tensor]]) -> list[float]:
    """Per output the standard deviation, between elements or between draws, if that is less."""
    spreads = []
    for same in zip(*answers, strict=True):
        if not same[0].is_floating_point() or len({t.shape for t in same}) > 1:
            spreads.append(0.0)
            continue
        spreads.append(min(_spread_between_draws(same), _spread_between_elements(same[0])))
    return spreads


def _spread_between_draws(same: tuple[torch.Tensor, ...]) -> float:
    total = 0.0
    for _, parts in pieces(*same):
        total += float(torch.stack([_wide(t) for t in parts]).var(dim=0, correction=1).sum())
    return float((total / max(same[0].numel(), 1)) ** 0.5)


def _spread_between_elements(tensor: torch.Tensor) -> float:
    count = tensor.numel()
    if count < 2:
        return float("inf")
    mean = sum(float(_wide(part).sum()) for _, (part,) in pieces(tensor)) / count
    squares = sum(float((_wide(part) - mean).square_().sum()) for _, (part,) in pieces(tensor))
    return float((squares / count) ** 0.5)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
