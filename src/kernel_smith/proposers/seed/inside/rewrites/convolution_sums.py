"""Sums and means of a convolution's result, by sums of its input.

Along an axis that is added up, it does not matter where an input meets an element of the window,
only whether it does. So each element of the window gets the sum of the inputs that it ever meets,
and what were positions become channels: a convolution over fewer axes, or a plain product.
"""

from __future__ import annotations

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.convolution import Convolution, Scaled
from kernel_smith.proposers.seed.inside.rewrites.graph import (
    Writer,
    aten,
    axes,
    changes_type,
    each_of,
    extent,
    given,
    value,
)

NAME = "sums taken before convolutions"

_REDUCTIONS = (aten.sum.dim_IntList, aten.mean.dim)


def apply(node: Node, write: Writer) -> Node | None:
    """Return the reduction of a convolution over positions, or nothing if it is not one."""
    reduced = node.args[0] if node.target in _REDUCTIONS and not changes_type(node) else None
    scaled = Scaled.of(reduced) if isinstance(reduced, Node) else None
    if scaled is None or not isinstance(reduced, Node):
        return None
    taken = axes(node, reduced) or []
    found = scaled.convolution
    if not taken or taken[0] < 2 or extent(reduced, taken) <= extent(found.weight, taken):
        return None
    total = _summed(found, [axis - 2 for axis in taken], write)
    biases = extent(reduced, taken)
    if node.target is aten.mean.dim:
        total, biases = write(aten.div.Tensor, total, biases), 1
    total = scaled.finished(total, write, biases)
    return total if given(node, "keepdim") else write(aten.squeeze.dims, total, taken)


def _summed(found: Convolution, positions: list[int], write: Writer) -> Node:
    """Return the sums over positions, whose axes stay with one element; without the bias."""
    x, weight = found.x, found.weight
    for axis in positions:
        places = [found.met(axis, place) for place in range(found.window(axis))]
        sums = [
            write(
                aten.sum.dim_IntList, write(aten.slice.Tensor, x, axis + 2, *each), [axis + 2], True
            )
            for each in places
        ]
        x = write(aten.cat.default, sums, 1) if len(sums) > 1 else sums[0]
        weight = _places_as_channels(weight, axis + 2, found.transposed, write)
    dimensions = len(found.steps)
    if len(positions) == dimensions:
        return _product(x, weight, found.transposed, write)

    def left(settings: list[int], neutral: int) -> list[int]:
        return [neutral if axis in positions else each for axis, each in enumerate(settings)]

    settings = [left(found.steps, 1), left(found.padding, 0)]
    gaps = left(found.gaps, 1)
    if found.transposed:
        more = left(each_of(given(found.node, "output_padding"), dimensions), 0)
        return write(found.node.target, x, weight, None, *settings, more, 1, gaps)
    return write(found.node.target, x, weight, None, *settings, gaps, 1)


def _places_as_channels(weight: Node, axis: int, transposed: bool, write: Writer) -> Node:
    """Return the window's elements along an axis, one block of input channels for each."""
    channels = 0 if transposed else 1
    shape = list(value(weight).shape)
    order = [each for each in range(len(shape)) if each != axis]
    order.insert(channels, axis)
    moved = write(aten.permute.default, weight, order)
    shape[channels], shape[axis] = shape[axis] * shape[channels], 1
    return write(aten.reshape.default, moved, shape)


def _product(x: Node, weight: Node, transposed: bool, write: Writer) -> Node:
    """Where no positions are left: one sum over channels for each output."""
    dimensions = value(x).dim() - 2
    flat = write(aten.reshape.default, x, [value(x).shape[0], 1, -1])
    if transposed:
        weight = write(aten.transpose.int, weight, 0, 1)
    matrix = write(aten.reshape.default, weight, [value(weight).shape[0], -1])
    sums = write(aten.sum.dim_IntList, write(aten.mul.Tensor, flat, matrix), [-1])
    return write(aten.reshape.default, sums, [*value(sums).shape] + [1] * dimensions)
