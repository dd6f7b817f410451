"""Example calls, and a `get_inputs` that makes more of their kind.

Sizes that differ between the calls become parameters of `get_inputs`, those that differ alike the
same one; every call is a workload.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.errors import BadInput
from kernel_smith.shipping.live.sources import literal
from kernel_smith.shipping.live.state import shift_text
from kernel_smith.shipping.runtime.signatures import Unfamiliar, by_position

_FORMS = (
    "a tensor or a tuple of arguments for one call, a dictionary for arguments by name, "
    "and a list of those for several calls"
)


@dataclass(frozen=True)
class Call:
    """The arguments of one call, by position."""

    arguments: tuple[Any, ...]


def read_calls(module: torch.nn.Module, given: Any) -> list[Call]:
    """Return the calls that a user's `example_inputs` stand for. Raises `BadInput`."""
    if given is None:
        raise BadInput("a live module needs example_inputs", hint=f"example_inputs is {_FORMS}")
    several = given if isinstance(given, list) else [given]
    if not several:
        raise BadInput("example_inputs is an empty list", hint=f"it is {_FORMS}")
    return [_call(module, one) for one in several]


def _call(module: torch.nn.Module, given: Any) -> Call:
    forward = inspect.signature(module.forward)
    arguments = given if isinstance(given, tuple) else () if isinstance(given, dict) else (given,)
    named = given if isinstance(given, dict) else {}
    try:
        forward.bind(*arguments, **named)
        return Call(by_position(forward, arguments, named))
    except Unfamiliar as error:
        raise BadInput(
            f"forward takes {error}, which a task cannot do",
            hint="leave it out, so that its default is used",
        ) from None
    except TypeError as error:
        raise BadInput(
            f"example_inputs do not fit forward{forward}: {error}", hint=f"it is {_FORMS}"
        ) from None


@dataclass(frozen=True)
class Inputs:
    """The text of `get_inputs`, and the workloads that give its parameters."""

    text: str
    workloads: dict[str, dict[str, int]]


def inputs_like(calls: list[Call]) -> Inputs:
    """Inputs as those of all calls."""
    symbols: dict[tuple[int, ...], str] = {}
    if len({len(call.arguments) for call in calls}) > 1:
        raise _differing("the number of arguments")
    columns = zip(*(call.arguments for call in calls), strict=True)
    texts = [
        _expression(list(column), symbols, f"argument {n + 1}") for n, column in enumerate(columns)
    ]
    parameters = ", ".join(f"{name}={sizes[0]}" for sizes, name in symbols.items())
    text = f"def get_inputs({parameters}):\n    return [{', '.join(texts)}]"
    return Inputs(text, _workloads(calls, symbols))


def _workloads(calls: list[Call], symbols: dict[tuple[int, ...], str]) -> dict[str, dict[str, int]]:
    if len(calls) == 1 or not symbols:
        return {"default": {}}
    found: dict[str, dict[str, int]] = {}
    for index in range(len(calls)):
        sizes = {name: values[index] for values, name in symbols.items()}
        name = "_".join(str(size) for size in sizes.values())
        found.setdefault(f"sizes_{name}", sizes)
    return found


def _expression(values: list[Any], symbols: dict[tuple[int, ...], str], where: str) -> str:
    """Return what makes one argument, whichever of the calls it is for."""
    first = values[0]
    if len({type(value) for value in values}) > 1 and not all(
        isinstance(value, torch.Tensor) for value in values
    ):
        raise _differing(f"the type of {where}")
    if isinstance(first, torch.Tensor):
        return _tensor(values, symbols, where)
    if isinstance(first, tuple | list):
        if len({len(value) for value in values}) > 1:
            raise _differing(f"the length of {where}")
        inner = [_expression(list(column), symbols, where) for column in zip(*values, strict=True)]
        joined = ", ".join(inner)
        is_list = isinstance(first, list)
        return f"[{joined}]" if is_list else f"({joined}{',' * (len(inner) == 1)})"
    if type(first) is int and len(set(values)) > 1:
        return _size(tuple(values), symbols)
    text = literal(first)
    if text is None or any(value != first for value in values):
        raise BadInput(
            f"{where} is a {type(first).__qualname__} that cannot be written down, or differs "
            "between calls",
            hint="pass tensors, numbers, strings, None, and tuples, lists of those",
        )
    return text


def _size(sizes: tuple[int, ...], symbols: dict[tuple[int, ...], str]) -> str:
    if len(set(sizes)) == 1:
        return str(sizes[0])
    return symbols.setdefault(sizes, f"size_{len(symbols)}")


def _tensor(values: list[torch.Tensor], symbols: dict[tuple[int, ...], str], where: str) -> str:
    first = values[0]
    if len({(value.dtype, value.dim()) for value in values}) > 1:
        raise _differing(f"the dtype or the number of dimensions of {where}")
    order = _order(first, where)
    if any(_order(value, where) != order for value in values):
        raise _differing(f"the order of strides of {where}")
    sizes = [_size(tuple(v.shape[d] for v in values), symbols) for d in order]
    text = _draw(torch.cat([value.detach().flatten().cpu() for value in values]), sizes, where)
    if order == sorted(order):
        return text
    back = ", ".join(str(order.index(d)) for d in range(len(order)))
    return f"({text}).permute({back})"


def _order(value: torch.Tensor, where: str) -> list[int]:
    """Return the dimensions from the slowest to the fastest in memory."""
    order = sorted(range(value.dim()), key=lambda d: (-value.stride()[d], d))
    if value.is_contiguous():
        return list(range(value.dim()))
    if not value.permute(order).is_contiguous():
        raise BadInput(
            f"{where} is a tensor with gaps between its elements, or with repeated ones",
            hint="call .contiguous() on it; other layouts are answered by the reference",
        )
    return order


def _draw(values: torch.Tensor, sizes: list[str], where: str) -> str:
    shape = ", ".join(sizes) or "()"
    listed = f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"
    if values.dtype is torch.bool:
        share = float(values.float().mean()) if values.numel() else 0.5
        return f"torch.rand({shape}) < {min(max(share, 0.01), 0.99):.3g}"
    if not values.is_floating_point():
        if values.is_complex():
            return f"torch.randn({shape}, dtype={values.dtype})"
        low, high = (int(values.min()), int(values.max())) if values.numel() else (0, 1)
        return f"torch.randint({low}, {max(high, low + 1) + 1}, {listed}, dtype={values.dtype})"
    wide = values.double()
    if not bool(torch.isfinite(wide).all()):
        raise BadInput(
            f"{where} holds values that are not finite, such as a mask's -inf",
            hint="pass a boolean mask, or make the mask in forward",
        )
    dtype = "" if values.dtype is torch.get_default_dtype() else f", dtype={values.dtype}"
    mean = float(wide.mean()) if values.numel() else 0.0
    spread = float(wide.std()) if values.numel() > 1 else 1.0
    if values.numel() > 1 and float(wide.min()) >= 0 and float(wide.max()) <= 1:
        return f"torch.rand({shape}{dtype})"
    factor = "" if abs(spread - 1) < 0.25 or spread == 0 else f" * {spread:.3g}"
    return f"torch.randn({shape}{dtype}){factor}{shift_text(mean, spread, values.numel() or 1)}"


def _differing(what: str) -> BadInput:
    return BadInput(
        f"{what} differs between the example calls, expected calls that differ in sizes",
        hint="optimize once for each kind of call",
    )
