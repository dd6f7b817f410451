"""Nested arguments and results as JSON: tensors are taken out, everything else is written down."""

from __future__ import annotations

from typing import Any

import torch

from kernel_smith.evaluation.sandbox.arena import dtype_name, resolve_dtype

_WITHOUT_NUMBERS = frozenset({"?builtins.NoneType", "?builtins.str"})


class UnsupportedValue(TypeError):
    """A value that cannot travel between processes."""


def flatten(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Describe `value` as JSON and append its tensors to `tensors`, in order."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    if isinstance(value, tuple):
        return {"tuple": [flatten(item, tensors) for item in value]}
    if isinstance(value, list):
        return {"list": [flatten(item, tensors) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_key(key), flatten(item, tensors)] for key, item in value.items()]}
    raise UnsupportedValue(
        f"{type(value).__name__} cannot be passed to a kernel; use tensors, numbers, strings, "
        "None, or lists, tuples and dictionaries of them"
    )


def _key(key: Any) -> Any:
    if key is None or isinstance(key, bool | int | float | str):
        return key
    raise UnsupportedValue(
        f"a key of type {type(key).__name__} cannot be passed to a kernel; use strings or numbers"
    )


def unflatten(template: Any, tensors: list[torch.Tensor]) -> Any:
    """Rebuild what `flatten` described, around other tensors."""
    ((kind, content),) = template.items()
    match kind:
        case "tensor":
            return tensors[content]
        case "value":
            return content
        case "dtype":
            return resolve_dtype(content)
        case "tuple":
            return tuple(unflatten(item, tensors) for item in content)
        case "list":
            return [unflatten(item, tensors) for item in content]
        case _:
            return {key: unflatten(item, tensors) for key, item in content}


def flatten_result(value: Any, tensors: list[torch.Tensor]) -> Any:
    """Like `flatten`, for what forward returned: numbers become tensors, so they are checked.

    What is not an exact tensor is named instead of taken: a subclass may compute when read.
    """
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        tensors.append(value.detach())
        return "tensor"
    if kind in (bool, int, float):
        tensors.append(torch.tensor(value, dtype=torch.float64 if kind is float else torch.int64))
        return kind.__name__
    if kind in (tuple, list):
        return [kind.__name__, *(flatten_result(item, tensors) for item in value)]
    if kind is dict:
        return ["dict", *([str(key), flatten_result(value[key], tensors)] for key in value)]
    if isinstance(value, tuple):
        return ["tuple", *(flatten_result(item, tensors) for item in value)]
    return f"?{kind.__module__}.{kind.__qualname__}"


def foreign_kinds(tree: Any) -> list[str]:
    """The classes of what a result holds beside tensors, numbers, text and None, by their names."""
    if isinstance(tree, str):
        return [tree[1:]] if tree.startswith("?") and tree not in _WITHOUT_NUMBERS else []
    kind, *items = tree
    inner = [item[1] for item in items] if kind == "dict" else items
    return [name for item in inner for name in foreign_kinds(item)]
