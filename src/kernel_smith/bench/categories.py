"""What kind of problem a reference is: one word, from the operations that it consists of."""

from __future__ import annotations

from collections import Counter

from kernel_smith.bench.operations import operations

OTHER = "other"
_HEAVY = ("product", "convolution", "depthwise convolution", "transposed convolution")
_LAYERS_OF_A_NETWORK = 4
# Of problems without products and convolutions, the first that occurs names it.
_LIGHT = (
    "quantisation",
    "loss",
    "softmax",
    "normalisation",
    "pooling",
    "scan",
    "search",
    "indexing",
    "reduction",
    "sampling",
    "activation",
    "layout",
    "arithmetic",
)
# What a product or a convolution is fused with; the rest prepares its operands or is part of it.
_FUSED_WITH = ("softmax", "normalisation", "pooling", "reduction", "activation", "loss", "search")
CATEGORIES = (
    "attention",
    "recurrent network",
    "state space",
    "network",
    *(f"{name}{suffix}" for name in _HEAVY for suffix in ("", ", fused")),
    *_LIGHT,
    OTHER,
)


def category(source: str) -> str:
    """One of `CATEGORIES`."""
    found = operations(source)
    if found["recurrent"]:
        return "recurrent network"
    if _attends(found):
        return "attention"
    heavy = [name for name in _HEAVY if found[name]]
    if found["scan"] and found["product"] > 1:
        return "state space"
    if sum(found[name] for name in heavy) >= _LAYERS_OF_A_NETWORK:
        return "network"
    if heavy:
        # Of several the rarer one says more: a product is in many of them.
        fused = len(heavy) > 1 or any(found[name] for name in _FUSED_WITH)
        fused = fused or found["arithmetic"] > 1
        return f"{heavy[-1]}, fused" if fused else heavy[-1]
    return next((name for name in _LIGHT if found[name]), OTHER)


def _attends(found: Counter[str]) -> bool:
    """By name, or as weights that come from one product and enter another."""
    return bool(found["attention"]) or bool(found["softmax"] and found["product"] >= 2)
