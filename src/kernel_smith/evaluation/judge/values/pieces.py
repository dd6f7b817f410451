"""Going through large tensors in pieces, so that what is computed about them stays small.

Comparing two tensors takes a few temporaries of their size in double precision. Of a tensor of
gigabytes only a piece at a time is looked at, which costs no time: a piece fits the cache.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterator

import torch

_WEIGHTS = 1 << 16
_COARSE = 128
_PIECE = {"cpu": 1 << 17, "cuda": 1 << 23}  # elements
_FEWEST_OF_HUGE = 16  # pieces on a GPU, where each one costs time to ask for


def pieces(
    *tensors: torch.Tensor, coarsely: bool = False
) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """Split tensors of one shape alike: where each piece begins in logical order, and the views.

    `coarsely`: into fewer pieces, for what needs hardly any memory.
    """
    first = tensors[0]
    most = _PIECE.get(first.device.type, _PIECE["cpu"]) * (_COARSE if coarsely else 1)
    if first.device.type == "cuda":
        most = max(most, first.numel() // _FEWEST_OF_HUGE)
    if first.numel() <= most:
        yield 0, list(tensors)
        return
    row = first.numel() // first.shape[0]
    if row > most:
        for index in range(first.shape[0]):
            rows = [tensor[index] for tensor in tensors]
            for offset, parts in pieces(*rows, coarsely=coarsely):
                yield index * row + offset, parts
        return
    step = max(1, most // row)
    for start in range(0, first.shape[0], step):
        yield start * row, [tensor[start : start + step] for tensor in tensors]


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Compare the bits of two tensors of one shape and dtype; NaN equals itself."""
    return all(_same_bits(a, b) for _, (a, b) in pieces(left, right, coarsely=True))


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    left, right = _in_memory(left), _in_memory(right)
    if _same_words(left, right) or torch.equal(left, right):
        return True
    # NaN differs from itself; only then are the bytes worth comparing.
    a, b = (t.contiguous().flatten().view(torch.uint8) for t in (left, right))
    return torch.equal(a, b)


def _same_words(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Eight bytes at a time, which is how most that are the same can be seen to be."""
    if not (left.is_contiguous() and right.is_contiguous()) or left.nbytes % 8 or not left.nbytes:
        return False
    places = left.data_ptr() | right.data_ptr()
    if places % 8:
        return False
    a, b = (t.flatten().view(torch.uint8).view(torch.int64) for t in (left, right))
    return torch.equal(a, b)


def _in_memory(tensor: torch.Tensor) -> torch.Tensor:
    """The same with nothing left to be done when it is read; complex numbers as pairs."""
    tensor = tensor.resolve_conj().resolve_neg()
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def digest(tensor: torch.Tensor) -> int:
    """Sum up the bits with secret weights: whoever does not know them cannot keep the sum."""
    total = 0
    for offset, (part,) in pieces(tensor):
        bits = part.contiguous().flatten().view(torch.uint8)
        bits = torch.nn.functional.pad(bits, (0, -bits.numel() % 4))
        words = bits.view(torch.int32)
        weights = _weights(str(words.device))
        rows = words.numel() // _WEIGHTS
        sums = (words[: rows * _WEIGHTS].view(rows, _WEIGHTS) * weights).sum(1)
        places = torch.arange(rows, device=sums.device).mul_(2).add_(2 * offset + 1)
        rest = words[rows * _WEIGHTS :]
        total += int((sums * places).sum())
        total += (2 * offset + 1) * int((rest * weights[: rest.numel()]).sum())
    return total


@functools.cache
def _weights(device: str) -> torch.Tensor:
    seed = secrets.randbits(63)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1 << 62, (_WEIGHTS,), generator=generator).to(device)
