"""The least time that a call could take: its bytes have to move, and its products to be computed.

Both rates are measured on this machine, by a large copy and by a large product.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kernel_smith.shipping.runtime.signatures import tensors_in
from kernel_smith.shipping.runtime.state import tensors_of

_COPIED, _SIDE, _REPETITIONS = 64 << 20, 1024, 5


@dataclass(frozen=True)
class Rates:
    """What a device reaches: bytes and floating point operations per second."""

    bytes: float
    operations: float

    @classmethod
    def of(cls, device: torch.device) -> Rates:
        """Measured now."""
        source = torch.ones(_COPIED // 4, device=device)
        target = torch.empty_like(source)
        square = torch.ones(_SIDE, _SIDE, device=device)
        copying = _seconds(lambda: target.copy_(source), device)
        multiplying = _seconds(lambda: square @ square, device)
        return cls(2 * _COPIED / copying, 2 * _SIDE**3 / multiplying)


def _seconds(call: Callable[[], Any], device: torch.device) -> float:
    best = float("inf")
    for _ in range(_REPETITIONS):
        begun = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begun)
    return best


def least_seconds(
    module: torch.nn.Module, arguments: tuple[Any, ...], result_bytes: int, rates: Rates
) -> float:
    """The limit for one call of a module."""
    moved = result_bytes + sum(tensor.nbytes for tensor in tensors_in(arguments))
    moved += sum(tensor.nbytes for _, tensor in tensors_of(module))
    return max(moved / rates.bytes, operations(module, arguments) / rates.operations)


def operations(module: torch.nn.Module, arguments: tuple[Any, ...]) -> int:
    """Those of matrix products and convolutions; the others are next to nothing beside bytes."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        try:
            module.forward(*arguments)
        except Exception:  # a module that cannot be called again is judged by its bytes
            return 0
    return int(counter.get_total_flops())
