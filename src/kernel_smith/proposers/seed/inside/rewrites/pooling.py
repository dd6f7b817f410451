"""Pools of pools, which are pools with larger windows."""

from __future__ import annotations

from torch.fx import Node

from kernel_smith.proposers.seed.inside.rewrites.graph import (
    Writer,
    aten,
    each_of,
    given,
    is_alone,
    value,
)

NAME = "pools of pools in one"

_LARGEST = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
MEANS = (aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default)


def apply(node: Node, write: Writer) -> Node | None:
    """Windows of the first must leave nothing out between them; those of means not overlap."""
    kind = next((kind for kind in (_LARGEST, MEANS) if node.target in kind), None)
    first = node.args[0] if node.args else None
    if kind is None or not isinstance(first, Node) or first.target is not node.target:
        return None
    dimensions = kind.index(node.target) + 1
    if not is_alone(first) or not _is_plain(node) or not _is_plain(first):
        return None
    windows, steps = _windows(first, dimensions)
    more, further = _windows(node, dimensions)
    if kind is MEANS:
        if windows != steps or more != further:
            return None
    elif any(step > window for window, step in zip(windows, steps, strict=True)):
        return None
    pairs = zip(windows, steps, more, strict=True)
    window = [inner + (outer - 1) * step for inner, step, outer in pairs]
    step = [inner * outer for inner, outer in zip(steps, further, strict=True)]
    found = write(node.target, first.args[0], window, step)
    assert value(found).shape == value(node).shape
    return found


def separate_windows(node: Node) -> list[int] | None:
    """Tell how large windows are, of more than one element, that neither overlap nor leave any
    out."""
    windows, steps = _windows(node, MEANS.index(node.target) + 1)
    return windows if windows == steps and max(windows) > 1 and _is_plain(node) else None


def _windows(node: Node, dimensions: int) -> tuple[list[int], list[int]]:
    """Tell how large windows are, and how far apart."""
    window = each_of(given(node, "kernel_size"), dimensions)
    return window, each_of(given(node, "stride") or window, dimensions)


def _is_plain(node: Node) -> bool:
    """Without padding, gaps, or windows that reach beyond the end."""
    return (
        set(each_of(given(node, "padding"), 1)) == {0}
        and not given(node, "ceil_mode")
        and set(each_of(given(node, "dilation") or 1, 1)) == {1}
        and given(node, "divisor_override") is None
    )
