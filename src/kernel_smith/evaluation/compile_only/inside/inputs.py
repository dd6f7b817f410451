"""A workload's arguments: the right shapes and types, without the cost of large values."""

from __future__ import annotations

import inspect
from typing import Any

import torch

_SMALL_BYTES = 64 << 20


def draw_inputs(task: Any, params: dict[str, Any]) -> list[Any]:
    """What `get_inputs` returns; for large inputs only its shapes, types and strides are true."""
    shapes = _try_on_meta(task, params)
    if shapes is None or _bytes(shapes) <= _SMALL_BYTES:
        return list(task.get_inputs(**params))
    return [_materialise(value) for value in shapes]


def draw_init_inputs(task: Any, params: dict[str, Any]) -> list[Any]:
    """What `get_init_inputs` returns, given those of the workload's parameters that it names."""
    function = getattr(task, "get_init_inputs", None)
    if function is None:
        return []
    accepted = inspect.signature(function).parameters
    return list(function(**{key: value for key, value in params.items() if key in accepted}))


def _try_on_meta(task: Any, params: dict[str, Any]) -> list[Any] | None:
    """The inputs as tensors without memory, or None if `get_inputs` needs real ones."""
    try:
        with torch.device("meta"):
            return list(task.get_inputs(**params))
    except Exception:
        return None


def _bytes(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.untyped_storage().nbytes()
    if isinstance(value, dict):
        value = list(value.values())
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0


def _materialise(value: Any) -> Any:
    """Memory for each tensor. It is left untouched, except that indices must be valid ones."""
    if isinstance(value, torch.Tensor):
        if not value.is_meta:
            return value
        real = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="cpu")
        return real if value.is_floating_point() or value.is_complex() else real.zero_()
    if isinstance(value, dict):
        return {key: _materialise(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_materialise(item) for item in value)
    return value
