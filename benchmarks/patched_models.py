"""Whole models before and after one of their operations was replaced by a kernel.

    python benchmarks/patched_models.py llama vit resnet --minutes 5
    python benchmarks/patched_models.py llama vit resnet --device cuda --large --dtype bfloat16 \
        --json patched_models.json

The models are transformers', with random weights. Of their modules that consist of several
operations, the one is optimized that has the most time to save; those without products, which the
library does well already, go first. Then the model is called, patched and unpatched in turn, and on
a GPU replayed as a CUDA graph, with the kernel and without. Results are held against those of the
same model in double precision, and the gradients of a step of training against those before
patching. Models that the file of results has already are left out. Several of these programs may
share a GPU: what is timed has it alone. `--brief` begins with what the compiler writes by its first
recipe, with the library's calls and without, and tries no others.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from common import describe_machine
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import kernel_smith as ks
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.platform.device_lock import using_device
from kernel_smith.shipping.live import Call, live_task
from kernel_smith.shipping.profiling.limits import Rates, least_seconds, operations
from kernel_smith.shipping.profiling.watching import Group, Watcher
from kernel_smith.shipping.whole_model import BeforeAndAfter

SECONDS, WATCHED = 20.0, 5
FEWEST = 3  # operations: there is nothing to fuse in one
MOST_PARTS = 16  # beyond that it is a network


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
            use_cache=False,
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
        for _ in range(WATCHED):
            model(x)
    rates = Rates.of(x.device, next(model.parameters()).dtype)

    def saved(group: Group) -> float:
        assert group.arguments is not None
        least = least_seconds(group.module, group.arguments, group.result_bytes, rates)
        return group.seconds - group.calls * least

    several = [g for g in watcher.groups.values() if g.arguments is not None and _fusible(g)]
    plain = [g for g in several if not operations(g.module, g.arguments or ())]
    return max(plain or several, key=saved)


def _fusible(group: Group) -> bool:
    assert group.arguments is not None
    if not group.calls or sum(1 for _ in group.module.modules()) > MOST_PARTS:
        return False
    try:
        live_task(group.module, [Call(group.arguments)])
    except BadInput:
        return False
    counted = _Operations()
    with counted:
        group.module.forward(*group.arguments)
    return counted.count >= FEWEST


def difference(found: Iterable[torch.Tensor], expected: Iterable[torch.Tensor]) -> float:
    """The largest difference, relative to the largest value of the tensor that it is in."""
    pairs = zip(found, expected, strict=True)
    return max(float((a.double() - b).abs().max() / b.double().abs().max()) for a, b in pairs)


def gradients(model: nn.Module, x: torch.Tensor) -> list[torch.Tensor]:
    """Those of a step of training, which leaves the model as it was."""
    state = copy.deepcopy(model.state_dict())
    model.train()
    with torch.enable_grad():
        model(x).last_hidden_state.float().square().mean().backward()
    model.eval().load_state_dict(state)
    named = [p.grad for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=True)
    return named


def sharing(device: str) -> contextlib.AbstractContextManager[None]:
    """Keep others from timing on the GPU meanwhile."""
    return contextlib.nullcontext() if device == "cpu" else using_device()


def optimized(group: Group, chosen: argparse.Namespace) -> ks.Optimized:
    extra: dict[str, Any] = {"models": chosen.models} if chosen.models else {}
    if chosen.brief:
        device = "cpu" if chosen.device == "cpu" else "cuda"
        seed = ks.seed(group.module, group.arguments, device=device, progress=False)
        written = [one.source for one in (seed.candidate, seed.authored_candidate) if one]
        extra |= {"starts": written, "proposers": ["tuner", "mutator"]}
    return ks.optimize(
        group.module, group.arguments, minutes=chosen.minutes, progress=False, **extra
    )


def correctness(model: nn.Module, x: torch.Tensor, found: ks.Optimized) -> dict[str, Any]:
    """How far results and gradients are off, before and after."""
    exact = copy.deepcopy(model).double()
    expected = [exact(x.double() if x.is_floating_point() else x).last_hidden_state]
    del exact
    before, before_step = difference([model(x).last_hidden_state], expected), gradients(model, x)
    names = found.patch(model)
    after, after_step = difference([model(x).last_hidden_state], expected), gradients(model, x)
    found.unpatch(model)
    return {
        "replaced": names,
        "error_before": before,
        "error_after": after,
        "gradient_difference": difference(after_step, before_step),
    }


def measure(name: str, chosen: argparse.Namespace) -> dict[str, Any]:
    torch.manual_seed(0)
    model, x = make(name, chosen.large)
    kind = getattr(torch, chosen.dtype)
    with sharing(chosen.device):
        model, x = model.to(chosen.device, kind).eval(), x.to(chosen.device)
        x = x.to(kind) if x.is_floating_point() else x
        group = worthwhile(model, x)
    row: dict[str, Any] = {"module": type(group.module).__name__, "shapes": group.shapes}
    print(
        f"{name}: {row['module']} on {group.shapes}, {group.calls // WATCHED} calls each time",
        flush=True,
    )
    found = optimized(group, chosen)
    print(found, flush=True)
    timing = found.evaluation.timing
    row |= {"kernel": None if timing is None else timing.speedup.model_dump()}
    row |= {"confirmed": found.confirmed, "source": found.candidate.source}
    with sharing(chosen.device):
        row |= correctness(model, x, found)
    gain = found.gain_in(model, x, seconds=SECONDS)
    print(gain, flush=True)
    return row | {"called": figures(gain.called), "captured": figures(gain.captured)}


def figures(measured: BeforeAndAfter | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {
        "before_ms": 1e3 * measured.before,
        "after_ms": 1e3 * measured.after,
        "speedup": measured.speedup.model_dump(),
    }


def print_row(name: str, row: dict[str, Any]) -> None:
    print(
        f"{name}: {len(row['replaced'])} modules replaced; error of the output "
        f"{row['error_before']:.1e} before, {row['error_after']:.1e} after; gradients differ by "
        f"{row['gradient_difference']:.1e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", choices=["llama", "vit", "resnet"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--models", help="a TOML file, or NAME@BASE_URL")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    report: dict[str, Any] = {"machine": describe_machine(), "models": {}}
    if chosen.json is not None and chosen.json.exists():
        report = json.loads(chosen.json.read_text())
    for name in chosen.names:
        if name in report["models"]:
            continue
        with torch.no_grad():
            try:
                row = measure(name, chosen)
            except BadInput as error:
                print(f"{name}: {error}")
                continue
        report["models"][name] = row
        print_row(name, row)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"torch {torch.__version__}, {chosen.device}, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main()
