"""Keeps attention in one piece, so that a kernel of our own can take its place.

Left alone, the compiler replaces it by what the library has on this device, or takes it apart.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from kernel_smith.proposers.seed.inside.spelled_attention import Spelled, spelled_attentions

aten = torch.ops.aten
_ATTENTION = aten.scaled_dot_product_attention.default
_TYPES = {torch.float32, torch.float16, torch.bfloat16}


@torch.library.custom_op("kernel_smith::attend", mutates_args=())
def _attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
    by_rows: bool,
) -> torch.Tensor:
    """Attention by the library, laid out as promised: of each row all heads together, or not."""
    result = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    return _memory(q, v, by_rows).copy_(result)


@_attend.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
    by_rows: bool,
) -> torch.Tensor:
    return _memory(q, v, by_rows)


def _memory(q: torch.Tensor, v: torch.Tensor, by_rows: bool) -> torch.Tensor:
    batches, heads, rows, _ = q.shape
    if by_rows:
        return q.new_empty((batches, rows, heads, v.shape[3])).transpose(1, 2)
    return q.new_empty((batches, heads, rows, v.shape[3]))


def has_attention(module: GraphModule) -> bool:
    """Tell whether a kernel of our own can take the place of something in a graph."""
    return bool(_calls(module) or _spelled(module))


def keep_attention(module: GraphModule) -> None:
    """Put one operation of our own in the place of each attention, called or spelled out."""
    module.graph.eliminate_dead_code()
    for node in _calls(module):
        given = _arguments(node)
        scale = given["scale"] or given["query"].meta["val"].shape[-1] ** -0.5
        keys = (_shared(given[name]) for name in ("key", "value"))
        with module.graph.inserting_before(node):
            kept = _call(
                module.graph,
                (given["query"], *keys, given["attn_mask"], given["is_causal"], scale),
                node,
            )
        node.replace_all_uses_with(kept)
        module.graph.erase_node(node)
    for one in _spelled(module):
        with module.graph.inserting_before(one.node):
            one.node.replace_all_uses_with(_written_as_one(module.graph, one))
    module.graph.eliminate_dead_code()
    module.recompile()


def _call(graph: torch.fx.Graph, arguments: tuple[Any, ...], replaced: Node) -> Node:
    by_rows = bool(replaced.users) and all(
        user.target is aten.transpose.int and {*user.args[1:]} == {1, 2} for user in replaced.users
    )
    return graph.call_function(torch.ops.kernel_smith.attend.default, (*arguments, by_rows))


def _calls(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.target is _ATTENTION and _is_plain(node)]


def _is_plain(node: Node) -> bool:
    """Tell whether all tensors have batches, heads, rows and elements, of one type that kernels
    know."""
    given = _arguments(node)
    tensors = [given[name].meta["val"] for name in ("query", "key", "value")]
    return _is_of_one_type(tensors) and all(tensor.dim() == 4 for tensor in tensors)


def _is_of_one_type(tensors: list[torch.Tensor]) -> bool:
    types = {tensor.dtype for tensor in tensors}
    return len(types) == 1 and types <= _TYPES


def _arguments(node: Node) -> dict[str, Any]:
    schema = node.target._schema.arguments  # type: ignore[union-attr]
    given = {argument.name: argument.default_value for argument in schema}
    given |= dict(zip((argument.name for argument in schema), node.args, strict=False))
    return given | node.kwargs


def _shared(node: Node) -> Node:
    """Keys before each was repeated for several heads: the kernel finds them itself."""
    match node:
        case Node(target=aten.repeat_interleave.self_int, args=[Node() as keys, int(), 1]):
            return keys
    return node


def _spelled(module: GraphModule) -> list[Spelled]:
    def tensors(one: Spelled) -> list[torch.Tensor]:
        return [node.meta["val"] for node in (one.q, one.transposed_k, one.v)]

    return [one for one in spelled_attentions(module) if _is_of_one_type(tensors(one))]


def _written_as_one(graph: torch.fx.Graph, one: Spelled) -> Node:
    """Return the same as one operation; where there are no heads, with one head."""
    lacks_heads = one.v.meta["val"].dim() == 3

    def with_heads(node: Node, dimensions: int) -> Node:
        add = lacks_heads and dimensions == 3
        return graph.call_function(aten.unsqueeze.default, (node, 1)) if add else node

    k = graph.call_function(aten.transpose.int, (one.transposed_k, -2, -1))
    q, k, v = (with_heads(node, 3) for node in (one.q, k, one.v))
    mask = one.added
    if one.hidden is not None:
        mask = graph.call_function(aten.logical_not.default, (one.hidden,))
    if mask is not None:
        mask = with_heads(mask, (one.hidden or mask).meta["val"].dim())
    kept = _call(graph, (q, k, v, mask, False, one.scale), one.node)
    return graph.call_function(aten.squeeze.dim, (kept, 1)) if lacks_heads else kept
