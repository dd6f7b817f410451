"""Values for the names in a plan: torch's own classes, drawn inputs, results told apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from kernel_smith.evaluation.sandbox.tree import flatten_result
from kernel_smith.trajectories.mine.guesses import CODE
from kernel_smith.trajectories.mine.plan import Input, Symbol
from kernel_smith.trajectories.mine.refusal import Refused

# Texts of our own, the same that are written into task files.
_OBJECTS: dict[str, Any] = {name: eval(text, {"torch": torch}) for name, text in CODE.items()}


def constructor_arguments(plan: dict[str, Any]) -> dict[str, Any]:
    arguments = dict(plan["init"])
    arguments |= {name: _OBJECTS[key] for name, key in plan["code"].items()}
    if plan["config"] is not None:
        arguments["config"] = SimpleNamespace(**plan["config"])
    return arguments


def draw(inputs: list[Input], sizes: dict[Symbol, int]) -> list[Any]:
    return [_draw(given, sizes) for given in inputs]


def _draw(given: Input, sizes: dict[Symbol, int]) -> Any:
    shape = [sizes[part] if isinstance(part, str) else part for part in given.shape]
    match given.kind:
        case "none":
            return None
        case "float":
            return torch.randn(shape)
        case "unit":
            return torch.rand(shape)
        case "index":
            return torch.randint(0, given.high, shape)
        case "mask":
            return torch.rand(shape) < 0.8
        case "pair":
            return (torch.randn(shape), torch.randn(shape))
        case "size":
            return shape[0] if len(shape) == 1 else tuple(shape)


def tensors_of(result: Any) -> list[torch.Tensor]:
    """The tensors of a result. Raises `Refused` where something else is in it."""
    tensors: list[torch.Tensor] = []
    tree = str(flatten_result(result, tensors))
    if "?" in tree.replace("?builtins.NoneType", ""):
        raise Refused("result-not-tensors", tree[:100])
    if not any(t.numel() for t in tensors):
        raise Refused("result-not-tensors", "no elements")
    return tensors
