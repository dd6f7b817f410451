"""The least time that a call could take: its bytes have to move, and its products to be computed.

Both rates are measured on this machine, by a large copy and by a large product of the same type.
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
_MULTIPLIED = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_COPIED_ON_GPU, _SIDE_ON_GPU = 512 << 20, 4096  # so that a launch is nothing beside it


@dataclass(frozen=True)
class Rates:
    """What a device reaches in one type: bytes and floating point operations per second."""

    bytes: float
    operations: float

    @classmethod
    def of(cls, device: torch.device, dtype: torch.dtype) -> Rates:
        """Measured now."""
        on_gpu = device.type == "cuda"
        copied, side = (_COPIED_ON_GPU, _SIDE_ON_GPU) if on_gpu else (_COPIED, _SIDE)
        source = torch.ones(copied // 4, device=device)
        target = torch.empty_like(source)
        square = torch.ones(side, side, device=device, dtype=dtype)
        copying = _seconds(lambda: target.copy_(source), device)
        multiplying = _seconds(lambda: square @ square, device)
        return cls(2 * copied / copying, 2 * side**3 / multiplying)


def dtype_of(module: torch.nn.Module, arguments: tuple[Any, ...]) -> torch.dtype:
    """Return the type that a module computes in: that of its parameters, or of what it is given."""
    held = [tensor for _, tensor in tensors_of(module)]
    types = [t.dtype for t in [*held, *tensors_in(arguments)] if t.dtype in _MULTIPLIED]
    return types[0] if types else torch.get_default_dtype()


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
    """Return the limit for one call of a module."""
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
