"""Which tensors a pointer parameter takes: element type, layout and number of elements.

A kernel sees raw memory. A tensor of narrower elements, or one that repeats its elements, makes it
read and write beyond the end, which kills the process long after. So both are refused, by name.
"""

from __future__ import annotations

import sys
from typing import Any

from kernel_smith.inline.prototype import Parameter

_ONE_BYTE = (
    *("int8", "uint8", "bool", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"),
    *("float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"),
)
# Integers are also how kernels spell bits, so they take every type of their width.
_TWO_BYTES = ("int16", "uint16", "float16", "bfloat16")
_FOUR_BYTES = ("int32", "uint32", "float32", "complex32")
_EIGHT_BYTES = ("int64", "uint64", "float64", "complex64")
_HALF = ("float16", "complex32")
_INTEGERS = {
    **dict.fromkeys(("bool", "int8_t", "uint8_t", "signed char"), _ONE_BYTE),
    **dict.fromkeys(("int16_t", "uint16_t", "short", "unsigned short"), _TWO_BYTES),
    **dict.fromkeys(("int32_t", "uint32_t", "int", "unsigned"), _FOUR_BYTES),
    **dict.fromkeys(("int64_t", "uint64_t", "size_t", "ptrdiff_t"), _EIGHT_BYTES),
    **dict.fromkeys(("long", "unsigned long", "long long", "unsigned long long"), _EIGHT_BYTES),
}
_DTYPES: dict[str, tuple[str, ...]] = {
    **_INTEGERS,
    "float": ("float32", "complex64"),
    "double": ("float64", "complex128"),
    **dict.fromkeys(("_Float16", "__half", "half", "__fp16", "c10::Half", "at::Half"), _HALF),
    **dict.fromkeys(("__bf16", "__nv_bfloat16", "nv_bfloat16", "hip_bfloat16"), ("bfloat16",)),
    **dict.fromkeys(("__hip_bfloat16", "__maca_bfloat16", "maca_bfloat16"), ("bfloat16",)),
    **dict.fromkeys(("c10::BFloat16", "at::BFloat16"), ("bfloat16",)),
}

_dense: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}
_MOST_LAYOUTS = 4096


def accepted_dtypes(parameter: Parameter) -> tuple[Any, ...]:
    """Torch's types that a pointer takes; none where it says nothing of them, as `void*` does."""
    torch = sys.modules.get("torch")
    names = _DTYPES.get(parameter.points_to.replace("std::", ""), ())
    return tuple(getattr(torch, name) for name in names if hasattr(torch, name))


def is_laid_out(tensor: Any, arguments: tuple[Any, ...]) -> bool:
    """Tell whether a kernel can find the elements of a tensor that is not contiguous.

    It can if they lie side by side in some order, which it may know, or if it is given the strides.
    """
    shape, strides = tuple(tensor.shape), tensor.stride()
    dense = _dense.get((shape, strides))
    if dense is None:
        if len(_dense) > _MOST_LAYOUTS:
            _dense.clear()
        dense = _dense[shape, strides] = _is_dense(shape, strides)
    return dense or _has_strides(shape, strides, arguments)


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for stride, size in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if size == 0:
            return True
        if stride != expected:
            return False
        expected *= size
    return True


def _has_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], arguments: tuple[Any, ...]
) -> bool:
    numbers = {value for value in arguments if value.__class__ is int}
    return all(s == 1 or s in numbers for n, s in zip(shape, strides, strict=True) if n > 1)


def check_tensor(tensor: Any, parameter: Parameter, arguments: tuple[Any, ...]) -> None:
    """Raise `TypeError` if the tensor is none that the parameter takes."""
    dtype = getattr(tensor, "dtype", None)
    if dtype is None:
        return  # anything with a data pointer may be passed; of its elements nothing is known
    accepted = accepted_dtypes(parameter)
    if accepted and dtype not in accepted:
        names = " or ".join(str(one).removeprefix("torch.") for one in accepted)
        raise TypeError(
            f"expected a tensor of {names}, got one of {str(dtype).removeprefix('torch.')}; "
            "convert it, or reinterpret its memory with .view(dtype)"
        )
    if tensor.numel() < parameter.elements:
        raise TypeError(
            f"expected at least {parameter.elements} elements, got {tensor.numel()} "
            f"in shape {tuple(tensor.shape)}"
        )
    if not tensor.is_contiguous() and not is_laid_out(tensor, arguments):
        raise TypeError(
            f"expected elements that lie side by side, got shape {tuple(tensor.shape)} with "
            f"strides {tensor.stride()}; call .contiguous(), or pass all strides that are not 1 "
            "as integers, too"
        )
