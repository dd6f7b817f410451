"""Means over large windows in parts, along one axis after the other.

The compiler leaves windows of more than 25 elements that overlap to the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
_LARGEST_WINDOW = 25
_Axis = tuple[int, int, int]  # the window, the step and the padding


def pools_in_parts() -> dict[Any, Callable[..., Any]]:
    """Return what stands for means over windows when a graph is taken apart."""
    return {aten.avg_pool2d.default: _mean_2d, aten.avg_pool3d.default: _mean_3d}


def _mean_2d(
    x: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    axes = _axes(2, kernel, stride, padding)
    if ceil_mode or divisor_override is not None or not _is_worth_it(axes):
        return NotImplemented
    down, right = axes
    lines = _pool(x, down, (1, 1, 0), count_include_pad)
    return _pool(lines, (1, 1, 0), right, count_include_pad)


def _mean_3d(
    x: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    axes = _axes(3, kernel, stride, padding)
    if ceil_mode or divisor_override is not None or not _is_worth_it(axes):
        return NotImplemented
    deep, down, right = axes
    *outside, depth, height, width = x.shape
    planes = _pool(x.reshape(-1, depth, height, width), down, right, count_include_pad)
    height, width = planes.shape[-2:]
    flat = planes.reshape(-1, 1, depth, height * width)
    return _pool(flat, deep, (1, 1, 0), count_include_pad).reshape(*outside, -1, height, width)


def _axes(
    count: int, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> list[_Axis]:
    whole = [list(part) * count if len(part) == 1 else part for part in (kernel, stride, padding)]
    return list(zip(whole[0], whole[1] or whole[0], whole[2], strict=True))


def _is_worth_it(axes: Sequence[_Axis]) -> bool:
    windows = [window for window, _, _ in axes]
    overlapping = any(window != step for window, step, _ in axes)
    several = sum(window > 1 for window in windows) > 1
    return overlapping and several and math.prod(windows) > _LARGEST_WINDOW


def _pool(x: torch.Tensor, down: _Axis, right: _Axis, padded: bool) -> torch.Tensor:
    kernel, stride, padding = zip(down, right, strict=True)
    pooled: torch.Tensor = aten.avg_pool2d.default(x, kernel, stride, padding, False, padded)
    return pooled
