"""Reductions over one element, which are that element."""

from __future__ import annotations

import operator

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.graph import (
    Writer,
    aten,
    axes,
    changes_type,
    extent,
    given,
    value,
)

NAME = "reductions over one element left out"

_TYPED = {aten.sum.dim_IntList, aten.mean.dim, aten.prod.dim_int}
_PLAIN = {aten.amax.default, aten.amin.default, aten.logsumexp.default}
_WITH_PLACE = {aten.max.dim, aten.min.dim}


def apply(node: Node, write: Writer) -> Node | None:
    """Return the element, or nothing if there are more. Of a maximum's place nobody may ask."""
    reduction = node
    if node.target is operator.getitem and node.args[1] == 0:
        reduction = node.args[0]  # type: ignore[assignment]
        if reduction.target not in _WITH_PLACE:
            return None
    elif node.target not in _TYPED | _PLAIN:
        return None
    reduced = reduction.args[0]
    if not isinstance(reduced, Node) or not value(reduced).dtype.is_floating_point:
        return None
    if reduction.target in _TYPED and changes_type(reduction):
        return None
    taken = axes(reduction, reduced)
    if not taken or extent(reduced, taken) != 1:
        return None
    if given(reduction, "keepdim"):
        return write(aten.alias.default, reduced)
    return write(aten.squeeze.dims, reduced, taken)
