"""Variants of the author's inputs. A kernel that does what the reference does survives them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet
from kernel_smith.records import Variant

_SCALES = {Variant.LARGE: 1e3, Variant.SMALL: 1e-3, Variant.HUGE: 2.0**20, Variant.TINY: 2.0**-20}
_MOST_OF_HALF = 2.0**13  # what float16 has room for, beside numbers around one
_FAR, _DIGITS_LEFT = 1024.0, 2  # times the spread, and bits that tell elements apart then
_APART = (32.0, 512.0)  # times the spread; drawn, so that no threshold tells far from near
_FEWEST_SPIKES, _ELEMENTS_PER_SPIKE, _SPIKE = 8, 256, 1e3  # so that some meet in one row
_TIE_LEVELS = 4
_NEAR_ZERO = 0.05  # of the largest


def vary(
    inputs: InputSet, variant: Variant, seed: int, free_integers: Sequence[bool] = ()
) -> InputSet:
    """A variant of the author's inputs. `free_integers`: tensors whose integers may be any of those
    that occur in it."""
    generator = torch.Generator().manual_seed(seed)
    free = free_integers or [False] * len(inputs.tensors)
    tensors = [
        vary_tensor(tensor, variant, generator, free=may_change)
        for tensor, may_change in zip(inputs.tensors, free, strict=True)
    ]
    return InputSet(inputs.template, tensors, variant.value)


def vary_tensor(
    tensor: torch.Tensor, variant: Variant, generator: torch.Generator, *, free: bool = False
) -> torch.Tensor:
    if variant is Variant.STRIDED:
        return _strided(tensor)
    if variant is Variant.EQUAL:
        return _equal(tensor, generator) if free and tensor.numel() else tensor
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    if variant in _SCALES:
        return tensor * _scale(variant, tensor.dtype)
    if variant is Variant.SHIFTED:
        return _shifted(tensor, torch.ones(tensor.dim() * (1,)), _FAR)
    if variant is Variant.UNEVEN:
        steps = _uneven((*tensor.shape[:-1], 1)[: tensor.dim()], generator)
        if _keeps_from_zero(tensor):
            steps = steps.abs() * math.copysign(1, float(tensor.flatten()[0]))
        return _shifted(tensor, steps, _draw_between(*_APART, generator))
    if variant is Variant.SORTED:
        return _sorted(tensor) if tensor.dim() else tensor
    if variant is Variant.TIES:
        scale = tensor.abs().amax().clamp_min(torch.finfo(tensor.dtype).tiny) / _TIE_LEVELS
        return (tensor / scale).round() * scale
    count = max(_FEWEST_SPIKES, tensor.numel() // _ELEMENTS_PER_SPIKE)
    positions = torch.randint(tensor.numel(), (count,), generator=generator)
    spikes = tensor.new_ones(tensor.numel()).index_fill_(0, positions.to(tensor.device), _SPIKE)
    return tensor * spikes.view(tensor.shape)


def _scale(variant: Variant, dtype: torch.dtype) -> float:
    factor = _SCALES[variant]
    if dtype is torch.float16:
        return min(max(factor, 1 / _MOST_OF_HALF), _MOST_OF_HALF)
    return factor


def _draw_between(low: float, high: float, generator: torch.Generator) -> float:
    """Every order of magnitude is as likely as another."""
    return low * math.pow(high / low, float(torch.rand((), generator=generator)))


def _shifted(tensor: torch.Tensor, steps: torch.Tensor, far: float) -> torch.Tensor:
    """Far from zero: what is computed as a difference of large numbers loses its digits, and
    exponentials overflow."""
    digits = round(1 - math.log2(torch.finfo(tensor.dtype).eps))
    far = min(far, 2.0 ** (digits - _DIGITS_LEFT))
    spread = tensor.float().std(correction=0).clamp_min(torch.finfo(torch.float32).tiny)
    offsets: torch.Tensor = steps.to(tensor.device) * (far * spread)
    return tensor + offsets.to(tensor.dtype)


def _keeps_from_zero(tensor: torch.Tensor) -> bool:
    """Is it of one sign, and nowhere near zero? So are temperatures and other divisors, which no
    program needs to expect otherwise. Numbers drawn between 0 and 1 are not."""
    low, high = (float(end) for end in torch.aminmax(tensor.float()))
    return min(abs(low), abs(high)) > _NEAR_ZERO * max(abs(low), abs(high)) and low * high > 0


def _uneven(shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Around one, to either side."""
    signs = torch.randint(2, shape, generator=generator) * 2 - 1
    return signs * (torch.rand(shape, generator=generator) + 0.5)


def _equal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One of its elements everywhere."""
    chosen = int(torch.randint(tensor.numel(), (), generator=generator))
    return tensor.flatten()[chosen].expand_as(tensor).clone()


def _sorted(tensor: torch.Tensor) -> torch.Tensor:
    """Along the last dimension. On the CPU numpy takes a tenth of the time."""
    if tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float64):
        return torch.from_numpy(numpy.sort(tensor.numpy(), axis=-1))
    return tensor.sort(dim=-1).values


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, every second element of a wider last dimension."""
    if tensor.dim() == 0:
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] * 2))
    wide[..., ::2] = tensor
    return wide[..., ::2]
