"""Times of every module while a program runs.

Modules of the same class, settings and sizes that are called with arguments of the same kind are
one group: one kernel would serve all of them.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules import module as hooks

from kernel_smith.shipping.runtime.signatures import (
    Unfamiliar,
    by_position,
    describe,
    tensors_in,
)
from kernel_smith.shipping.runtime.state import fingerprint

_KEPT_SHARE = 1 / 8  # of the memory that is free


@dataclass
class Group:
    """Calls that one kernel would serve. `arguments` are those of the first call, if kept."""

    module: torch.nn.Module
    arguments: tuple[Any, ...] | None
    shapes: str
    calls: int = 0
    seconds: float = 0.0
    result_bytes: int = 0


class _Calls(threading.local):
    """The calls of a thread that have not returned, with their groups as far as these are known."""

    def __init__(self) -> None:
        self.open: list[tuple[Group | None, float]] = []


class Watcher:
    """Notes every call of a module. What is taken by name alone is timed with its parents."""

    def __init__(self) -> None:
        self.groups: dict[Any, Group] = {}
        self._calls = _Calls()
        self._lock = threading.Lock()
        self._fingerprints: dict[int, tuple[torch.nn.Module, str]] = {}
        self._room: dict[torch.device, int] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what runs inside."""
        before = hooks.register_module_forward_pre_hook(self._begin)
        after = hooks.register_module_forward_hook(self._end, with_kwargs=True, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()
            # PyTorch forgets to, and `torch.compile` would warn of hooks that are there.
            hooks._global_forward_hooks_with_kwargs.pop(after.id, None)

    def _begin(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        """Note the arguments before the call may change them. Those by name are not told here."""
        group = None if torch.compiler.is_compiling() else self._group(module, arguments)
        _wait(arguments)
        self._calls.open.append((group, time.perf_counter()))

    def _end(
        self,
        module: torch.nn.Module,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        result: Any,
    ) -> None:
        _wait((*arguments, named))
        ended = time.perf_counter()
        group, begun = self._calls.open.pop()
        if named and not torch.compiler.is_compiling():
            group = self._group_by_name(module, arguments, named)
        if group is not None:
            with self._lock:
                group.calls += 1
                group.seconds += ended - begun
                group.result_bytes = sum(tensor.nbytes for tensor in tensors_in(result))

    def _group_by_name(
        self, module: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> Group | None:
        try:
            forward = inspect.signature(module.forward)
            return self._group(module, by_position(forward, arguments, named))
        except TypeError:  # by name alone, or a call that failed
            return None

    def _group(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> Group | None:
        if not arguments or not any(True for _ in tensors_in(arguments)):
            return None
        try:
            described = tuple(describe(one) for one in arguments)
        except (Unfamiliar, RuntimeError):
            return None
        with self._lock:
            key = (self._fingerprint(module), described, module.training)
            if key not in self.groups:
                shapes = " ".join("x".join(map(str, t.shape)) for t in tensors_in(arguments))
                self.groups[key] = Group(module, self._copied(arguments), shapes)
            return self.groups[key]

    def _fingerprint(self, module: torch.nn.Module) -> str:
        # The module is held, so that its number is not given to another one.
        known = self._fingerprints.get(id(module))
        if known is None:
            known = self._fingerprints[id(module)] = (module, fingerprint(module))
        return known[1]

    def _copied(self, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the arguments as they are now, unless that takes too much memory."""
        devices = {tensor.device for tensor in tensors_in(arguments)}
        for device in devices - self._room.keys():
            self._room[device] = int(_KEPT_SHARE * free_bytes(device))
        wanted = {
            device: sum(t.nbytes for t in tensors_in(arguments) if t.device == device)
            for device in devices
        }
        if any(wanted[device] > self._room[device] for device in devices):
            return None
        for device in devices:
            self._room[device] -= wanted[device]
        return tuple(_copy(one) for one in arguments)


def free_bytes(device: torch.device) -> int:
    """Tell how much memory nobody uses there."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.preserve_format)
    if isinstance(value, tuple | list):
        return type(value)(_copy(item) for item in value)
    return value


def _wait(arguments: tuple[Any, ...]) -> None:
    """A GPU works while Python goes on; a module's time is that until its work is done."""
    if any(tensor.is_cuda for tensor in tensors_in(arguments)):
        torch.cuda.synchronize()
