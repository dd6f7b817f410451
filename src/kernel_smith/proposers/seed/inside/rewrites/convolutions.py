"""Sums and means of a convolution's result, by sums of its input.

Along an axis that is added up, it does not matter where an input meets an element of the window,
only whether it does. So each element of the window gets the sum of the inputs that it ever meets,
and what were positions become channels: a convolution over fewer axes, or a plain product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.graph import (
    Writer,
    aten,
    axes,
    changes_type,
    each_of,
    extent,
    given,
    is_alone,
    is_number,
    value,
)

NAME = "sums taken before convolutions"

_REDUCTIONS = (aten.sum.dim_IntList, aten.mean.dim)
_PLAIN = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
_TRANSPOSED = (
    aten.conv_transpose1d.default,
    aten.conv_transpose2d.input,
    aten.conv_transpose3d.input,
)


@dataclass(frozen=True)
class _Convolution:
    """What a call says, with one entry for each axis of an image or volume."""

    node: Node
    transposed: bool
    x: Node
    weight: Node
    bias: Node | None
    steps: list[int]
    padding: list[int]
    gaps: list[int]

    @classmethod
    def of(cls, node: Node) -> _Convolution | None:
        if node.target not in _PLAIN + _TRANSPOSED or given(node, "groups") != 1:
            return None
        dimensions = value(node).dim() - 2
        settings = [
            each_of(given(node, name), dimensions) for name in ("stride", "padding", "dilation")
        ]
        batched = value(given(node, "input")).dim() == dimensions + 2
        if not batched or dimensions < 1:
            return None
        tensors = (given(node, name) for name in ("input", "weight", "bias"))
        return cls(node, node.target in _TRANSPOSED, *tensors, *settings)

    def met(self, axis: int, place: int) -> tuple[int, int, int]:
        """The inputs along an axis that an element of the window meets: from, to, every."""
        step, pad, gap = self.steps[axis], self.padding[axis], self.gaps[axis]
        inputs, outputs = value(self.x).shape[axis + 2], value(self.node).shape[axis + 2]
        before = pad - place * gap
        many = outputs if self.transposed else inputs
        # Of those that step, the first and the last whose partner is inside.
        first = max(0, math.ceil(before / step))
        last = min((inputs if self.transposed else outputs) - 1, (many - 1 + before) // step)
        if self.transposed:
            return first, max(first, last + 1), 1
        return first * step - before, max(first, last + 1) * step - before, step


def apply(node: Node, write: Writer) -> Node | None:
    """The reduction of a convolution over positions, or nothing if it is not one."""
    reduced = node.args[0] if node.target in _REDUCTIONS and not changes_type(node) else None
    if not isinstance(reduced, Node):
        return None
    scales, inner = _scales(reduced)
    found = _Convolution.of(inner) if inner is not None else None
    taken = axes(node, reduced) or []
    if found is None or not taken or taken[0] < 2:
        return None
    positions = [axis - 2 for axis in taken]
    if extent(reduced, taken) <= extent(found.weight, taken):
        return None
    total = _summed(found, positions, write)
    count = extent(reduced, taken)
    if node.target is aten.mean.dim:
        total = write(aten.div.Tensor, total, count)
    if found.bias is not None:
        bias = write(aten.reshape.default, found.bias, [-1] + [1] * (value(total).dim() - 2))
        bias = bias if node.target is aten.mean.dim else write(aten.mul.Tensor, bias, count)
        total = write(aten.add.Tensor, total, bias)
    for target, factor in reversed(scales):
        total = write(target, total, factor)
    return total if given(node, "keepdim") else write(aten.squeeze.dims, total, taken)


def _scales(node: Node) -> tuple[list[tuple[Any, float]], Node | None]:
    """The numbers that a result is multiplied with, the last first, and what is multiplied."""
    scales: list[tuple[Any, Any]] = []
    while is_alone(node) and node.target in (aten.mul.Tensor, aten.div.Tensor):
        inner, factor = node.args[:2]
        if not isinstance(inner, Node) or not is_number(factor):
            return [], None
        scales.append((node.target, factor))
        node = inner
    return scales, node if is_alone(node) else None


def _summed(found: _Convolution, positions: list[int], write: Writer) -> Node:
    """The sums over positions, whose axes stay with one element; without the bias."""
    x, weight = found.x, found.weight
    for axis in positions:
        places = [found.met(axis, place) for place in range(value(weight).shape[axis + 2])]
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
    """The window's elements along an axis, one block of input channels for each."""
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
