"""Averages over windows of a convolution's result: a convolution with fewer positions.

A mean of neighbouring results is one result of a window that is larger and further apart. Of a
transposed convolution whose steps are as long as the windows of the mean, it is a plain one.
"""

from __future__ import annotations

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.convolution import PLAIN, Convolution, Scaled
from kernel_smith.proposers.seed.inside.rewrites.graph import Writer, aten, value
from kernel_smith.proposers.seed.inside.rewrites.pooling import MEANS, separate_windows

NAME = "averages taken within convolutions"


def apply(node: Node, write: Writer) -> Node | None:
    """Return the mean over windows of a convolution, or nothing if it is not one, or no less
    work."""
    if node.target not in MEANS or not isinstance(node.args[0], Node):
        return None
    windows, scaled = separate_windows(node), Scaled.of(node.args[0])
    if windows is None or scaled is None or set(scaled.convolution.gaps) != {1}:
        return None
    found = scaled.convolution
    if found.transposed:
        result = _transposed(found, windows, value(node).shape[2:], write)
    elif _is_pointwise(found):
        pooled = write(node.target, found.x, windows)
        result = write(found.node.target, pooled, found.weight)
    else:
        result = _plain(found, windows, write)
    if result is None:
        return None
    return scaled.finished(result, write)


def _is_pointwise(found: Convolution) -> bool:
    ones = [found.window(axis) for axis in range(len(found.steps))] + found.steps
    return set(ones) == {1} and set(found.padding) == {0}


def _plain(found: Convolution, windows: list[int], write: Writer) -> Node | None:
    """Windows that hold all that the results of a mean have seen, once for each."""
    weight = found.weight
    for axis, (count, step) in enumerate(zip(windows, found.steps, strict=True)):
        if step >= found.window(axis) and count > 1:
            return None  # nothing is seen twice, so nothing is gained
        reach = (count - 1) * step
        shifted = [
            _padded(weight, axis, place * step, reach - place * step, write)
            for place in range(count)
        ]
        weight = shifted[0]
        for each in shifted[1:]:
            weight = write(aten.add.Tensor, weight, each)
        weight = write(aten.div.Tensor, weight, count)
    steps = [count * step for count, step in zip(windows, found.steps, strict=True)]
    return write(found.node.target, found.x, weight, None, steps, found.padding)


def _transposed(
    found: Convolution, windows: list[int], results: tuple[int, ...], write: Writer
) -> Node | None:
    """Each mean of results has seen a few neighbouring inputs, which are the same for all."""
    if windows != found.steps:
        return None
    x, weight = found.x, write(aten.transpose.int, found.weight, 0, 1)
    for axis, count in enumerate(windows):
        size, pad = found.window(axis), found.padding[axis]
        # Seen from a mean, the inputs from `first` to `last` take part.
        first, last = -((size - 1 - pad) // count), (count - 1 + pad) // count
        span = last - first + 1
        before = last * count - pad
        weight = _padded(weight, axis, before, span * count - before - size, write)
        weight = _grouped_means(weight, axis + 2, span, count, write)
        weight = write(aten.flip.default, weight, [axis + 2])
        after = results[axis] + span - 1 - value(found.x).shape[axis + 2] + first
        x = _padded(x, axis, -first, after, write)
    return write(PLAIN[len(windows) - 1], x, weight)


def _padded(node: Node, axis: int, before: int, after: int, write: Writer) -> Node:
    """With zeros at either end of an axis; where there are to be fewer, without those that go."""
    if before == after == 0:
        return node
    axes_after = value(node).dim() - axis - 3
    return write(aten.constant_pad_nd.default, node, [0, 0] * axes_after + [before, after])


def _grouped_means(node: Node, axis: int, groups: int, size: int, write: Writer) -> Node:
    shape = list(value(node).shape)
    split = write(aten.reshape.default, node, [*shape[:axis], groups, size, *shape[axis + 1 :]])
    return write(aten.mean.dim, split, [axis + 1])
