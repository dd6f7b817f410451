"""What rules need to look at a graph and to write into it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

aten = torch.ops.aten


class Writer:
    """Adds operations before a node, with what is known of their results."""

    def __init__(self, graph: Graph, before: Node) -> None:
        self._graph, self._before = graph, before

    def __call__(self, target: Any, *arguments: Any) -> Node:
        with self._graph.inserting_before(self._before):
            node = self._graph.call_function(target, arguments)
        node.meta["val"] = target(*map_arg(arguments, lambda each: each.meta["val"]))
        return node


def value(node: Node) -> torch.Tensor:
    """Shape and type of a result."""
    found: torch.Tensor = node.meta["val"]
    return found


def given(node: Node, name: str) -> Any:
    """Return an argument of an operation, or its default; None if it has no such argument."""
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    for position, argument in enumerate(schema):
        if argument.name == name:
            if name in node.kwargs:
                return node.kwargs[name]
            return node.args[position] if position < len(node.args) else argument.default_value
    return None


def is_alone(node: Node) -> bool:
    """Does nobody else need the result?"""
    return len(node.users) == 1


def axes(node: Node, reduced: Node, name: str = "dim") -> list[int] | None:
    """Return the dimensions that a reduction takes, from 0 on; all of them if it names none."""
    count = value(reduced).dim()
    found = given(node, name)
    if found is None or found == []:
        return list(range(count))
    wanted = found if isinstance(found, Sequence) else [found]
    return sorted(int(axis) % count for axis in wanted) if count else None


def changes_type(node: Node) -> bool:
    return given(node, "dtype") not in (None, value(node.all_input_nodes[0]).dtype)


def extent(node: Node, taken: Sequence[int]) -> int:
    return math.prod(value(node).shape[axis] for axis in taken)


def is_number(given_argument: Any) -> bool:
    return isinstance(given_argument, int | float) and not isinstance(given_argument, bool)


def is_scalar(given_argument: Any) -> bool:
    """A number, or a tensor that holds one."""
    if isinstance(given_argument, Node):
        return value(given_argument).dim() == 0
    return is_number(given_argument)


def each_of(sizes: int | Sequence[int], dimensions: int) -> list[int]:
    """Return one size for each dimension, where one may stand for all."""
    found = [sizes] if isinstance(sizes, int) else list(sizes)
    return found * dimensions if len(found) == 1 else found
