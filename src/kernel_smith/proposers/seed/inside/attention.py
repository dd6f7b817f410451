"""Keeps attention in one piece, so that a kernel of our own can take its place.

Left alone, the compiler replaces it by what the library has on this device, or takes it apart.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

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


def attentions(module: GraphModule) -> list[Node]:
    """The attentions of a graph that a kernel of our own can take the place of."""
    return [node for node in module.graph.nodes if node.target is _ATTENTION and _is_plain(node)]


def keep_attention(module: GraphModule) -> None:
    """Put one operation of our own in the place of each attention."""
    for node in attentions(module):
        given = _arguments(node)
        q, k, v = (given[name] for name in ("query", "key", "value"))
        scale = given["scale"] or q.meta["val"].shape[-1] ** -0.5
        by_rows = all(user.target is aten.transpose.int for user in node.users)
        with module.graph.inserting_before(node):
            kept = module.graph.call_function(
                torch.ops.kernel_smith.attend.default,
                (q, _shared(k), _shared(v), given["attn_mask"], given["is_causal"], scale, by_rows),
            )
        kept.meta = dict(node.meta)
        node.replace_all_uses_with(kept)
        module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()


def _is_plain(node: Node) -> bool:
    """Whether all tensors have batches, heads, rows and elements, of one type that kernels know."""
    given = _arguments(node)
    tensors = [given[name].meta["val"] for name in ("query", "key", "value")]
    types = {tensor.dtype for tensor in tensors}
    return len(types) == 1 and types <= _TYPES and all(tensor.dim() == 4 for tensor in tensors)


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
