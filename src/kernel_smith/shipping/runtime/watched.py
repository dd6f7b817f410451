"""What a module holds, remembered to notice in every call that something of it has changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .signatures import describe, tensors_in
from .state import HOOKS, OF_NN, is_statistic


@dataclass(frozen=True)
class Watched:
    """The state of a module at one time."""

    places: tuple[tuple[dict[str, Any], str, Any], ...] = ()
    """Where parts and tensors are put."""
    tensors: tuple[tuple[torch.Tensor, Hashable], ...] = ()
    """What tensors are like: `.data = other` leaves them in their place."""
    values: tuple[tuple[torch.Tensor, int, int], ...] = ()
    """Version and address of tensors whose values a kernel may rely on."""
    settings: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = ()
    """All attributes of a part, and what they were."""
    hooks: tuple[tuple[dict[int, Any], int], ...] = ()
    parts: tuple[torch.nn.Module, ...] = ()

    @classmethod
    def of(cls, module: torch.nn.Module) -> Watched:
        """Return the state as it is now."""
        parts = tuple(module.modules())
        places = [place for part in parts for place in _places(part)]
        held = [tensor for *_, value in places for tensor in tensors_in(value)]
        hooks = [getattr(part, name) for part in parts[1:] for name in HOOKS]
        return cls(
            places=tuple(places),
            tensors=tuple((one, like) for one in held if (like := _described(one)) is not None),
            values=tuple(
                (tensor, tensor._version, _address(tensor))
                for tensor in relied_on(module)
                if not tensor.is_inference()
            ),
            settings=tuple((vars(part), _copied(vars(part))) for part in parts),
            hooks=tuple((one, len(one)) for one in hooks),
            parts=parts,
        )

    def unchanged(self) -> bool:
        """Tell whether everything is still in its place, and is what it was."""
        for table, name, value in self.places:
            if table.get(name) is not value:
                return False
        for hooks, count in self.hooks:
            if len(hooks) != count:
                return False
        try:
            for now, before in self.settings:
                if now != before:
                    return False
            for tensor, like in self.tensors:
                if describe(tensor) != like:
                    return False
        except Exception:  # whatever two values of the user's do when they are compared
            return False
        return self.same_values()

    def same_values(self) -> bool:
        """Tell whether no tensor was written to whose values matter."""
        for tensor, version, address in self.values:
            if tensor._version != version or _address(tensor) != address:
                return False
        return True


def relied_on(module: torch.nn.Module) -> list[torch.Tensor]:
    """Tensors whose values are part of what a kernel was verified for.

    That is buffers, but for statistics, and attributes that are neither buffers nor parameters.
    """
    return [
        tensor
        for part in module.modules()
        for table, name, value in _places(part)
        if table is vars(part) or (table is part._buffers and not is_statistic(name))
        for tensor in tensors_in(value)
    ]


def _places(part: torch.nn.Module) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Tell where a module puts its parts and tensors."""
    for table in (part._modules, part._parameters, part._buffers):
        for name, value in table.items():
            yield table, name, value
    for name, value in vars(part).items():
        if name not in OF_NN and any(True for _ in tensors_in(value)):
            yield vars(part), name, value


def _described(tensor: torch.Tensor) -> Hashable:
    try:
        return describe(tensor)
    except (TypeError, RuntimeError):  # of a library's type, or without strides
        return None


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # it has no memory
        return 0


def _copied(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes, where lists and dictionaries may be changed later."""
    return {
        name: value.copy() if type(value) in (list, dict) and name not in OF_NN else value
        for name, value in attributes.items()
    }
