"""Which calls a kernel was verified for: types, shapes, strides and device of the arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_PLAIN = frozenset({bool, int, float, str, type(None), torch.dtype, torch.device, torch.Size})
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})


class Unfamiliar(TypeError):
    """An argument of a kind that no kernel was verified for."""


def describe(value: Any) -> Hashable:
    """Return all of an argument that a kernel may depend on, but for the elements of tensors."""
    kind = type(value)
    if kind in _TENSORS:
        # Sparse tensors have no strides, which raises RuntimeError.
        return value.dtype, value.shape, value.stride(), value.device
    if kind in _PLAIN:
        return kind, value
    if kind is tuple or kind is list:
        return (kind, *[describe(item) for item in value])
    if kind is dict:
        return (kind, *[(key, describe(item)) for key, item in value.items()])
    raise Unfamiliar(kind.__name__)


def without_idle_strides(described: Any) -> Any:
    """Return the same description, where strides of dimensions with one element make no
    difference."""
    if not isinstance(described, tuple):
        return described
    if len(described) == 4 and isinstance(described[1], torch.Size):
        dtype, shape, strides, device = described
        used = tuple(0 if n == 1 else s for n, s in zip(shape, strides, strict=True))
        return dtype, shape, used, device
    return tuple(map(without_idle_strides, described))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Yield every tensor of nested arguments, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def with_tensors(value: Any, tensors: Iterator[Any]) -> Any:
    """Return the same arguments with other tensors in their places."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (tuple, list)):
        return rebuilt(value, [with_tensors(item, tensors) for item in value])
    if isinstance(value, dict):
        return {key: with_tensors(item, tensors) for key, item in value.items()}
    return value


def rebuilt(like: Any, items: list[Any]) -> Any:
    """Return a tuple or list of the same type; those with named fields take them one by one."""
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def has_names(value: Any) -> bool:
    """Tell whether a result is, or holds, a tuple of a type of its own."""
    if isinstance(value, dict):
        return has_names(list(value.values()))
    if not isinstance(value, (tuple, list)):
        return False
    return type(value) not in (tuple, list) or any(map(has_names, value))


def in_form(form: Any, result: Any) -> Any:
    """Return a result in containers of the types that another one has."""
    if isinstance(form, dict):
        return {key: in_form(item, result[key]) for key, item in form.items()}
    if isinstance(form, (tuple, list)):
        return rebuilt(form, [in_form(*pair) for pair in zip(form, result, strict=True)])
    return result


@dataclass(frozen=True)
class Signature:
    """One call that was verified; `arguments` are like those, with tensors that have no memory."""

    key: Hashable
    arguments: tuple[Any, ...]

    def matches(self, arguments: tuple[Any, ...]) -> bool:
        """The same question as comparing keys, in words that torch's compiler can follow."""
        return len(arguments) == len(self.arguments) and all(map(_alike, arguments, self.arguments))


def _alike(given: Any, verified: Any) -> bool:
    if isinstance(verified, torch.Tensor):
        return (
            isinstance(given, torch.Tensor)
            and given.dtype == verified.dtype
            and given.shape == verified.shape
            and given.stride() == verified.stride()
        )
    if isinstance(verified, (tuple, list)):
        return (
            isinstance(given, type(verified))
            and len(given) == len(verified)
            and all(map(_alike, given, verified))
        )
    if isinstance(given, torch.Tensor):
        return False
    return type(given) is type(verified) and bool(given == verified)


def by_position(
    forward: inspect.Signature, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Return a call's arguments in the order of the parameters, as far as they were given.

    A parameter that was left out before one that was given takes its default.
    """
    if not named:
        return arguments
    bound = forward.bind(*arguments, **named)
    if bound.kwargs:
        _fill_gaps(forward, bound.arguments)
    if bound.kwargs:
        raise Unfamiliar(f"{', '.join(bound.kwargs)} by name alone")
    return bound.args


def _fill_gaps(forward: inspect.Signature, given: dict[str, Any]) -> None:
    """Add the defaults that lie between arguments, in the order of the parameters."""
    values: dict[str, Any] = dict(given)
    gap: dict[str, Any] = {}
    given.clear()
    for name, parameter in forward.parameters.items():
        if name in values:
            if parameter.kind is not parameter.KEYWORD_ONLY:
                given.update(gap)
            given[name] = values[name]
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            gap[name] = parameter.default


def verified_arguments(get_inputs: Callable[..., Any], sizes: dict[str, Any]) -> tuple[Any, ...]:
    """Return what the reference is called with, as tensors without memory."""
    try:
        with torch.device("meta"):
            arguments = tuple(get_inputs(**sizes))
    except Exception:  # some inputs can only be made with values, such as sorted offsets
        with torch.random.fork_rng(devices=[]):
            arguments = tuple(get_inputs(**sizes))
    metas = iter([tensor.to("meta") for tensor in tensors_in(arguments)])
    rebuilt: tuple[Any, ...] = with_tensors(arguments, metas)
    return rebuilt


def key_of(arguments: tuple[Any, ...], device: torch.device) -> Hashable:
    """Return the description of verified arguments, as if their tensors were on the device."""
    return tuple(_moved(describe(one), device) for one in arguments)


def _moved(described: Any, device: torch.device) -> Any:
    if not isinstance(described, tuple) or isinstance(described, torch.Size):
        return described
    if described[:1] == (torch.device,):
        return described  # an argument that is a device
    return tuple(
        device if isinstance(part, torch.device) else _moved(part, device) for part in described
    )
