"""Writes the structure of a model's result: tuples, lists and dictionaries of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.export.graph_signature import ConstantArgument, OutputSpec, TensorArgument

from kernel_smith.proposers.seed.refusal import refused


def write_outputs(specs: Sequence[OutputSpec], structure: Any, names: list[str]) -> str:
    """Write an expression for the result; `names` hold the graph's outputs in order."""
    if len(names) != len(specs):
        raise refused(f"the compiler returns {len(names)} values, the model {len(specs)}")
    leaves = []
    for name, spec in zip(names, specs, strict=True):
        match spec.arg:
            case TensorArgument():
                leaves.append(name)
            case ConstantArgument(value=value):
                leaves.append(repr(value))
            case other:
                raise refused(f"the model returns a {type(other).__name__}")
    remaining = iter(leaves)
    return _written(structure, remaining)


def _written(spec: Any, leaves: Any) -> str:
    if spec.is_leaf():
        return str(next(leaves))
    parts = [_written(child, leaves) for child in _children(spec)]
    if spec.type is tuple:
        return f"({', '.join(parts)},)"
    if spec.type.__module__ == "torch.return_types":  # such as `max` and `topk` give
        return f"torch.return_types.{spec.type.__name__}(({', '.join(parts)},))"
    if spec.type is list:
        return f"[{', '.join(parts)}]"
    if spec.type is dict:
        pairs = zip(spec.context, parts, strict=True)
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in pairs) + "}"
    raise refused(f"the model returns a {spec.type.__name__}")


def _children(spec: Any) -> list[Any]:
    """Versions of torch differ in how they spell it."""
    method = getattr(spec, "children", None)
    return list(method() if callable(method) else spec.children_specs)
