"""Sums and means through linear maps: the rows of a product need not be there to be added up.

The sum over all outputs of `linear(x, weight)` is a product of `x` with one vector, the sum of the
weight's rows; the mean over all inputs of a batch is the map of their mean.
"""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.graph import (
    Writer,
    aten,
    axes,
    changes_type,
    extent,
    given,
    is_alone,
    is_number,
    is_scalar,
    value,
)

NAME = "sums taken through products"

_REDUCTIONS = {aten.sum.dim_IntList, aten.mean.dim}
_PRODUCTS = {aten.matmul.default, aten.mm.default}


def apply(node: Node, write: Writer) -> Node | None:
    """Return the sum or mean of a linear map, or nothing if it is not one."""
    if node.target not in _REDUCTIONS or changes_type(node):
        return None
    reduced = node.args[0]
    if not isinstance(reduced, Node) or not is_alone(reduced):
        return None
    taken = axes(node, reduced)
    last = value(reduced).dim() - 1
    if not taken or extent(reduced, taken) == 1:
        return None
    if taken == [last]:
        return _over_outputs(node, reduced, write)
    if last not in taken and reduced.target is aten.linear.default:
        return _over_inputs(node, reduced, taken, write)
    return None


def _over_outputs(node: Node, reduced: Node, write: Writer) -> Node | None:
    if not _is_linear(reduced):
        return None
    found = _row_sums(reduced, write)
    if node.target is aten.mean.dim:
        found = write(aten.div.Tensor, found, value(reduced).shape[-1])
    return found if given(node, "keepdim") else write(aten.squeeze.dim, found, -1)


def _is_linear(node: Node) -> bool:
    """A product, scaled, and shifted by what is the same for every row, that nobody else needs."""
    if not is_alone(node):
        return False
    if node.target is aten.linear.default or node.target in _PRODUCTS:
        return _weight_dimensions(node) == 2
    if node.target is aten.dropout.default:
        return (given(node, "p") == 0 or not given(node, "train")) and _is_linear(_first(node))
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return is_scalar(node.args[1]) and _inner_is_linear(node)
    if node.target in (aten.add.Tensor, aten.sub.Tensor):
        return given(node, "alpha") == 1 and _same_for_rows(node) and _inner_is_linear(node)
    return False


def _first(node: Node) -> Node:
    first: Any = node.args[0]
    return first  # type: ignore[no-any-return]


def _inner_is_linear(node: Node) -> bool:
    """Also keeps its shape and type: what is added may not make more of it."""
    inner = node.args[0]
    return (
        isinstance(inner, Node)
        and value(inner).shape == value(node).shape
        and value(inner).dtype is value(node).dtype
        and _is_linear(inner)
    )


def _same_for_rows(node: Node) -> bool:
    other = node.args[1]
    if is_number(other):
        return True
    if not isinstance(other, Node):
        return False
    *leading, last = value(other).shape or (1,)
    return all(size == 1 for size in leading) and last in (1, value(node).shape[-1])


def _weight_dimensions(node: Node) -> int:
    weight = node.args[1]
    return value(weight).dim() if isinstance(weight, Node) else 0


def _row_sums(node: Node, write: Writer) -> Node:
    """Return the sums over the last dimension, which stays with one element."""
    if node.target is aten.linear.default:
        x, weight, bias = _first(node), given(node, "weight"), given(node, "bias")
        found = _times(x, write(aten.sum.dim_IntList, weight, [0]), write)
        if bias is None:
            return found
        return write(aten.add.Tensor, found, write(aten.sum.default, bias))
    if node.target in _PRODUCTS:
        return _times(_first(node), write(aten.sum.dim_IntList, node.args[1], [1]), write)
    inner = _row_sums(_first(node), write)
    if node.target is aten.dropout.default:
        return inner
    other: Any = node.args[1]
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        return write(node.target, inner, other)
    count = value(node).shape[-1]
    if is_number(other):
        return write(node.target, inner, other * count)
    times = count if value(other).numel() == 1 else 1
    total = write(aten.mul.Tensor, write(aten.sum.default, other), times)
    return write(node.target, inner, total)


def _times(x: Node, vector: Node, write: Writer) -> Node:
    """Return a product with a vector as a sum, which the compiler writes a kernel for."""
    return write(aten.sum.dim_IntList, write(aten.mul.Tensor, x, vector), [-1], True)


def _over_inputs(node: Node, reduced: Node, taken: list[int], write: Writer) -> Node | None:
    """Return the map of a mean; of a sum the bias counts as often as there are inputs."""
    x, weight, bias = _first(reduced), given(reduced, "weight"), given(reduced, "bias")
    if value(weight).dim() != 2:
        return None
    total = write(node.target, x, taken, given(node, "keepdim"))
    if bias is not None and node.target is aten.sum.dim_IntList:
        bias = write(aten.mul.Tensor, bias, extent(reduced, taken))
    return write(aten.linear.default, total, weight, bias)
