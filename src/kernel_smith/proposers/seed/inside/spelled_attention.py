"""Finds attention that is spelled out: a softmax of products, multiplied with values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

aten = torch.ops.aten
_PRODUCTS = {aten.matmul.default, aten.bmm.default}
_NEGATIVE = -math.inf


@dataclass
class Spelled:
    """The last product, what is multiplied, and what happens to scores on the way.

    `hidden` says where scores are not to count, `added` what is added to them.
    """

    node: Node
    q: Node
    transposed_k: Node
    v: Node
    scale: float = 1.0
    hidden: Node | None = None
    added: Node | None = None


def spelled_attentions(module: GraphModule) -> list[Spelled]:
    """Return all that can be told apart from other uses of a softmax."""
    found = [_read(node) for node in module.graph.nodes if node.target in _PRODUCTS]
    return [one for one in found if one is not None]


def _read(node: Node) -> Spelled | None:
    weights, v = node.args[:2]
    softmax = _kept(weights) if isinstance(weights, Node) else None
    if softmax is None or softmax.target is not aten.softmax.int or not isinstance(v, Node):
        return None
    scores, axis = softmax.args[:2]
    last = _value(softmax).dim() - 1
    if not isinstance(scores, Node) or axis not in (-1, last) or not _alone(softmax):
        return None
    one = Spelled(node, node, node, v)
    product = _before_softmax(scores, one)
    if product is None or not all(isinstance(operand, Node) for operand in product.args[:2]):
        return None
    one.q, one.transposed_k = product.args[:2]  # type: ignore[assignment]
    return one if _fits(one) else None


def _kept(node: Node) -> Node | None:
    """Return what a dropout that drops nothing was given."""
    while node.target is aten.dropout.default:
        if (node.args[1] != 0 and node.args[2]) or not _alone(node):
            return None
        (node,) = node.all_input_nodes
    return node


def _before_softmax(node: Node, one: Spelled) -> Node | None:
    """The product that scores come from; notes what changed them on the way. One mask at most."""
    while node.target not in _PRODUCTS:
        masked = one.hidden is not None or one.added is not None
        if not _alone(node):
            return None
        match node.target, node.args:
            case ((aten.mul.Tensor | aten.mul.Scalar), (Node() as scores, float() | int() as by)):
                one.scale *= by
            case ((aten.div.Tensor | aten.div.Scalar), (Node() as scores, float() | int() as by)):
                one.scale /= by
            case aten.masked_fill.Scalar, (Node() as scores, Node() as hidden, by) if (
                by == _NEGATIVE and not masked and one.scale > 0
            ):
                one.hidden = hidden
            case aten.add.Tensor, (Node() as scores, Node() as added) if (
                not masked and one.scale == 1 and not node.kwargs
            ):
                one.added = added
            case _:
                return None
        node = scores
    return node if _alone(node) else None


def _fits(one: Spelled) -> bool:
    """Tell whether batches and heads are the same everywhere, and a mask is no larger than
    scores."""
    q, k, v = (_value(node) for node in (one.q, one.transposed_k, one.v))
    mask = one.hidden or one.added
    dimensions = {q.dim(), k.dim(), v.dim()}
    return (
        dimensions <= {3, 4}
        and len(dimensions) == 1
        and q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
        and (mask is None or (_value(mask).dim() in (2, q.dim()) and one.scale > 0))
    )


def _alone(node: Node) -> bool:
    return len(node.users) == 1


def _value(node: Node) -> Any:
    return node.meta["val"]
