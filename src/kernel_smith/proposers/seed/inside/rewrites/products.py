"""Products that need less: with a diagonal matrix, and three in the cheaper order."""

from __future__ import annotations

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.graph import Writer, aten, given, is_alone, value

DIAGONAL = "products with a diagonal as scaled rows"
ORDER = "products in the cheaper order"

_PRODUCTS = {aten.matmul.default, aten.mm.default}
_CHEAPER = 0.7  # else the other order is not worth its rounding


def scale_by_diagonal(node: Node, write: Writer) -> Node | None:
    """Return a diagonal matrix times another, or the other way round."""
    if node.target not in _PRODUCTS:
        return None
    left, right = node.args[:2]
    if not isinstance(left, Node) or not isinstance(right, Node):
        return None
    if min(value(left).dim(), value(right).dim()) < 2:
        return None
    if (vector := _diagonal(left)) is not None:
        return write(aten.mul.Tensor, write(aten.unsqueeze.default, vector, -1), right)
    if (vector := _diagonal(right)) is not None:
        return write(aten.mul.Tensor, left, vector)
    return None


def _diagonal(node: Node) -> Node | None:
    """Return the vector on the main diagonal of a matrix that is zero elsewhere."""
    if node.target is aten.diag.default and given(node, "diagonal") == 0:
        vector = node.args[0]
        return vector if isinstance(vector, Node) and value(vector).dim() == 1 else None
    if node.target is aten.diag_embed.default and given(node, "offset") == 0:
        vector = node.args[0]
        plain = given(node, "dim1") == -2 and given(node, "dim2") == -1
        return vector if isinstance(vector, Node) and plain and value(vector).dim() == 1 else None
    return None


def reorder(node: Node, write: Writer) -> Node | None:
    """(a b) c as a (b c), or a (b c) as (a b) c, where that multiplies much less."""
    if node.target not in _PRODUCTS:
        return None
    left, right = node.args[:2]
    if (operands := _matrices(left, right)) is not None:
        first, last = _multiplications(*operands)
        a, b, c = operands
        if last < _CHEAPER * first:
            return write(aten.mm.default, a, write(aten.mm.default, b, c))
    if (operands := _matrices(right, left, after=True)) is not None:
        first, last = _multiplications(*operands)
        a, b, c = operands
        if first < _CHEAPER * last:
            return write(aten.mm.default, write(aten.mm.default, a, b), c)
    return None


def _matrices(
    product: object, other: object, *, after: bool = False
) -> tuple[Node, Node, Node] | None:
    """Return the three that are multiplied, if all are plain matrices; `after`: the other comes
    first."""
    if not isinstance(product, Node) or product.target not in _PRODUCTS or not is_alone(product):
        return None
    inner = product.args[:2]
    operands = (other, *inner) if after else (*inner, other)
    if all(isinstance(each, Node) and value(each).dim() == 2 for each in operands):
        return operands  # type: ignore[return-value]
    return None


def _multiplications(a: Node, b: Node, c: Node) -> tuple[int, int]:
    """Return what (a b) c takes, and what a (b c) does."""
    (rows, inner), (_, between), (_, columns) = (value(each).shape for each in (a, b, c))
    return rows * between * (inner + columns), inner * columns * (between + rows)
