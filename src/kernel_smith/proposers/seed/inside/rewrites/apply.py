"""Applies all rules to a graph, again and again until none finds anything."""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch.fx import GraphModule, Node

from kernel_smith.proposers.seed.inside.rewrites import (
    convolution_sums,
    pooled_convolutions,
    pooling,
    products,
    single,
    sums,
)
from kernel_smith.proposers.seed.inside.rewrites.graph import Writer, value

Rule = Callable[[Node, Writer], Node | None]

# Single elements first: what is left of them opens the way to the others.
RULES: dict[str, Rule] = {
    single.NAME: single.apply,
    sums.NAME: sums.apply,
    convolution_sums.NAME: convolution_sums.apply,
    products.DIAGONAL: products.scale_by_diagonal,
    products.ORDER: products.reorder,
    pooling.NAME: pooling.apply,
    pooled_convolutions.NAME: pooled_convolutions.apply,
}


def applicable(module: GraphModule) -> tuple[str, ...]:
    """Return the names of the rules that find something; the graph stays as it is."""
    return rewrite_graph(copy.deepcopy(module))


def rewrite_graph(module: GraphModule) -> tuple[str, ...]:
    """Rewrite a graph in place, and name the rules that found something, in their order."""
    used: dict[str, None] = {}
    module.graph.eliminate_dead_code()  # what nobody needs is not worth a rewrite
    while (name := _rewrite_once(module)) is not None:
        used[name] = None
    module.recompile()
    return tuple(name for name in RULES if name in used)


def _rewrite_once(module: GraphModule) -> str | None:
    graph = module.graph
    for name, rule in RULES.items():
        for node in graph.nodes:
            found = rule(node, Writer(graph, node)) if node.op == "call_function" else None
            if found is None:
                continue
            before, after = value(node), value(found)
            assert (before.shape, before.dtype) == (after.shape, after.dtype), name
            node.replace_all_uses_with(found)
            graph.eliminate_dead_code()
            return name
    return None
