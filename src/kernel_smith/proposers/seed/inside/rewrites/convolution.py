"""What a call of a convolution says, and what is done to its result before it is averaged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.graph import (
    Writer,
    aten,
    each_of,
    given,
    is_alone,
    is_scalar,
    value,
)

PLAIN = (aten.conv1d.default, aten.conv2d.default, aten.conv3d.default)
TRANSPOSED = (
    aten.conv_transpose1d.default,
    aten.conv_transpose2d.input,
    aten.conv_transpose3d.input,
)


@dataclass(frozen=True)
class Convolution:
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
    def of(cls, node: Node) -> Convolution | None:
        if node.target not in PLAIN + TRANSPOSED or given(node, "groups") != 1:
            return None
        dimensions = value(node).dim() - 2
        settings = [
            each_of(given(node, name), dimensions) for name in ("stride", "padding", "dilation")
        ]
        batched = value(given(node, "input")).dim() == dimensions + 2
        if not batched or dimensions < 1:
            return None
        tensors = (given(node, name) for name in ("input", "weight", "bias"))
        return cls(node, node.target in TRANSPOSED, *tensors, *settings)

    def met(self, axis: int, place: int) -> tuple[int, int, int]:
        """Return the inputs along an axis that an element of the window meets: from, to, every."""
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

    def window(self, axis: int) -> int:
        size: int = value(self.weight).shape[axis + 2]
        return size


@dataclass(frozen=True)
class Scaled:
    """A convolution whose result is multiplied with numbers, the last one first."""

    convolution: Convolution
    factors: list[tuple[Any, Any]]

    @classmethod
    def of(cls, node: Node) -> Scaled | None:
        """Nothing where somebody else needs what is between."""
        factors: list[tuple[Any, Any]] = []
        while is_alone(node) and node.target in (aten.mul.Tensor, aten.div.Tensor):
            inner, factor = node.args[:2]
            if not isinstance(inner, Node) or not is_scalar(factor):
                return None
            factors.append((node.target, factor))
            node = inner
        found = Convolution.of(node) if is_alone(node) else None
        return None if found is None else cls(found, factors)

    def finished(self, result: Node, write: Writer, biases: int = 1) -> Node:
        """Return a result with so many times the bias, multiplied as it was."""
        bias = self.convolution.bias
        if bias is not None:
            bias = write(aten.reshape.default, bias, [-1] + [1] * (value(result).dim() - 2))
            bias = bias if biases == 1 else write(aten.mul.Tensor, bias, biases)
            result = write(aten.add.Tensor, result, bias)
        for target, factor in reversed(self.factors):
            result = write(target, result, factor)
        return result
