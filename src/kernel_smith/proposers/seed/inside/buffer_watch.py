"""Which buffers `forward` replaces, of which torch.export tells only those of the model itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def watching_buffers(model: torch.nn.Module) -> Iterator[list[str]]:
    """Collect the names of those that are others at the end of a call than at its start.

    Outside of the call they never are: torch.export puts all of them back.
    """
    before: dict[str, torch.Tensor] = {}
    replaced: list[str] = []

    def note(*_: Any) -> None:
        before.update(_buffers(model))

    def compare(*_: Any) -> None:
        after = _buffers(model)
        names = dict.fromkeys((*before, *after))
        replaced.extend(name for name in names if before.get(name) is not after.get(name))

    with contextlib.ExitStack() as hooks:
        hooks.enter_context(model.register_forward_pre_hook(note))
        hooks.enter_context(model.register_forward_hook(compare))
        yield replaced


def _buffers(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return dict(model.named_buffers(remove_duplicate=False))
