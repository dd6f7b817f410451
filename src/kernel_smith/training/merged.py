"""An adapter as part of the weights, for as long as answers are written.

Beside the weights an adapter is several small kernels for each large one, and writing an answer
token by token is mostly a matter of how many kernels there are. Afterwards the weights are the very
same numbers as before: they were put aside, not computed back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def merged(model: Any) -> Iterator[None]:
    """Does nothing for a model without an adapter."""
    from peft import PeftModel
    from peft.tuners.tuners_utils import BaseTunerLayer

    if not isinstance(model, PeftModel):
        yield
        return
    layers = [layer for layer in model.modules() if isinstance(layer, BaseTunerLayer)]
    before = [layer.get_base_layer().weight.data for layer in layers]
    try:
        for layer, weights in zip(layers, before, strict=True):
            layer.get_base_layer().weight.data = _sum(layer, weights)
        with model.disable_adapter():
            yield
    finally:
        for layer, weights in zip(layers, before, strict=True):
            layer.get_base_layer().weight.data = weights


def _sum(layer: Any, weights: Any) -> Any:
    import torch

    with torch.no_grad():
        changes = [layer.get_delta_weight(name) for name in layer.active_adapters]
        return sum(changes, start=weights.float()).to(weights.dtype)
