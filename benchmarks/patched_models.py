"""Whole models before and after one of their operations was replaced by a kernel.

    python benchmarks/patched_models.py llama --minutes 5
    python benchmarks/patched_models.py vit --device cuda --large

The model is one of transformers, with random weights. Of its modules that consist of several
operations, the one is optimized that has the most time to save; those without products, which the
library does well already, go first. Then the model is called, patched and unpatched in turn; the
interval is a bootstrap's over the rounds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import kernel_smith as ks
from kernel_smith.errors import BadInput
from kernel_smith.shipping.live import Call, live_task
from kernel_smith.shipping.profiling.limits import Rates, least_seconds, operations
from kernel_smith.shipping.profiling.watching import Group, Watcher

ROUNDS, RESAMPLED = 60, 2000
FEWEST = 3  # operations: there is nothing to fuse in one
MOST_PARTS = 6  # beyond that it is a network


class _Operations(TorchDispatchMode):
    """Counts the operations of the library that run inside."""

    count = 0

    def __torch_dispatch__(
        self, function: Any, kinds: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        self.count += 1
        return function(*arguments, **(named or {}))


def make(name: str, large: bool) -> tuple[nn.Module, torch.Tensor]:
    from transformers import (
        LlamaConfig,
        LlamaModel,
        ResNetConfig,
        ResNetModel,
        ViTConfig,
        ViTModel,
    )

    width = 2048 if large else 256
    if name == "llama":
        config = LlamaConfig(
            hidden_size=width,
            intermediate_size=3 * width,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=8,
            vocab_size=1000,
        )
        return LlamaModel(config), torch.randint(0, 1000, (8 if large else 1, 512 if large else 64))
    images = torch.randn(32 if large else 1, 3, 224, 224)
    if name == "vit":
        layers = 12 if large else 2
        config = ViTConfig(hidden_size=768, num_hidden_layers=layers, num_attention_heads=12)
        return ViTModel(config, add_pooling_layer=False), images
    return ResNetModel(ResNetConfig(depths=[3, 4, 6, 3] if large else [1, 1, 1, 1])), images


def worthwhile(model: nn.Module, x: torch.Tensor) -> Group:
    """The group of modules that has the most time to save."""
    model(x)
    watcher = Watcher()
    with watcher.watching():
        for _ in range(5):
            model(x)
    rates = Rates.of(x.device)

    def saved(group: Group) -> float:
        assert group.arguments is not None
        least = least_seconds(group.module, group.arguments, group.result_bytes, rates)
        return group.seconds - group.calls * least

    several = [g for g in watcher.groups.values() if g.arguments is not None and _fusible(g)]
    plain = [g for g in several if not operations(g.module, g.arguments or ())]
    return max(plain or several, key=saved)


def _fusible(group: Group) -> bool:
    assert group.arguments is not None
    if sum(1 for _ in group.module.modules()) > MOST_PARTS:
        return False
    try:
        live_task(group.module, [Call(group.arguments)])
    except BadInput:
        return False
    counted = _Operations()
    with counted:
        group.module.forward(*group.arguments)
    return counted.count >= FEWEST


def seconds(model: nn.Module, x: torch.Tensor) -> float:
    begun = time.perf_counter()
    model(x)
    if x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def compare(model: nn.Module, x: torch.Tensor, found: ks.Optimized) -> list[tuple[float, float]]:
    """Times before and after, taken in turn; the first call after each change is left out."""
    pairs = []
    for _ in range(ROUNDS):
        model(x)
        before = seconds(model, x)
        found.patch(model)
        model(x)
        after = seconds(model, x)
        found.unpatch(model)
        pairs.append((before, after))
    return pairs


def interval(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    ratios = [before / after for before, after in pairs]
    draw = random.Random(0)
    medians = sorted(
        statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLED)
    )
    return statistics.median(ratios), medians[RESAMPLED // 40], medians[-RESAMPLED // 40]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", choices=["llama", "vit", "resnet"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--models", help="a TOML file, or NAME@BASE_URL")
    chosen = parser.parse_args()
    torch.manual_seed(0)
    model, x = make(chosen.model, chosen.large)
    model, x = model.to(chosen.device).eval(), x.to(chosen.device)
    with torch.no_grad():
        group = worthwhile(model, x)
        print(
            f"{type(group.module).__name__} on {group.shapes}, {group.calls // 5} calls each time"
        )
        extra: dict[str, Any] = {"models": chosen.models} if chosen.models else {}
        found = ks.optimize(group.module, group.arguments, minutes=chosen.minutes, **extra)
        print(found)
        expected = model(x).last_hidden_state
        names = found.patch(model)
        error = (model(x).last_hidden_state - expected).abs().max() / expected.abs().max()
        found.unpatch(model)
        pairs = compare(model, x, found)
    value, low, high = interval(pairs)
    before, after = (1e3 * statistics.median(each) for each in zip(*pairs, strict=True))
    print(f"{len(names)} modules replaced; largest difference {error:.1e} of the output's scale")
    print(
        f"{before:.2f} ms before, {after:.2f} ms after: {value:.3f}x (95%: {low:.3f} to {high:.3f})"
    )
    print(f"torch {torch.__version__}, {chosen.device}, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
