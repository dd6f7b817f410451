"""Lets a program that was written for a GPU run on tensors of the CPU.

Tensors say that they are on `cuda:0`, requests for memory there get memory of the CPU, and
`torch.cuda` answers the questions that such programs ask.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_DEVICE = torch.device("cuda", 0)
_REAL = torch.device("cpu")
_ANSWERS: dict[Any, Any] = {
    torch.Tensor.device.__get__: _DEVICE,
    torch.Tensor.is_cuda.__get__: True,  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: False,  # type: ignore[attr-defined]
    torch.Tensor.get_device: 0,
}


class _Sequel:
    """A stream, or an event on one. Launches are left out, so everything has always happened."""

    cuda_stream = cuda_event = 0
    device = _DEVICE

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def wait_stream(self, stream: Any) -> None: ...
    def wait_event(self, event: Any) -> None: ...
    def wait(self, stream: Any = None) -> None: ...
    def record(self, stream: Any = None) -> None: ...
    def synchronize(self) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        return event or _Sequel()

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Any) -> float:
        return 0.0


class PretendDevice(TorchFunctionMode):
    """Within it, every tensor is on the GPU, as far as the program can see."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _ANSWERS:
            return _ANSWERS[func]
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to and len(args) > 1 and _is_gpu(args[1]):
            args = (args[0], _REAL, *args[2:])
        if _is_gpu(kwargs.get("device")):
            if func is torch.Tensor.to:
                kwargs["device"] = _REAL
            else:
                del kwargs["device"]  # a surrounding `with torch.device(...)` may decide
        return func(*args, **kwargs)


def _is_gpu(device: Any) -> bool:
    if isinstance(device, torch.device):
        return device.type == "cuda"
    if isinstance(device, str):
        return device.partition(":")[0] == "cuda"
    return isinstance(device, int) and not isinstance(device, bool)


def dress_up(target: dict[str, Any]) -> None:
    """Have `torch.cuda` speak for the target."""
    name, stock = target["name"], target["stock"]
    capability = tuple(target["capability"])
    registers = {} if stock is None else {"regs_per_multiprocessor": stock["registers"]}
    properties = SimpleNamespace(
        name=name,
        major=capability[0],
        minor=capability[1],
        multi_processor_count=target["multiprocessors"],
        shared_memory_per_block_optin=target["shared_bytes"],
        warp_size=target["warp"],
        total_memory=80 << 30,
        **registers,
    )
    stream = _Sequel()
    answers = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": name,
        "get_device_capability": capability,
        "get_device_properties": properties,
        "current_stream": stream,
        "default_stream": stream,
        "set_stream": None,
        "synchronize": None,
        "set_device": None,
        "empty_cache": None,
    }
    for function, answer in answers.items():
        setattr(torch.cuda, function, lambda *args, answer=answer, **kwargs: answer)
    for kind in ("Stream", "ExternalStream", "Event"):
        setattr(torch.cuda, kind, _Sequel)
    # It takes real streams alone, and looks at them before any mode is asked.
    torch.Tensor.record_stream = lambda self, s: None  # type: ignore[method-assign]
    for guard in ("device", "device_of", "stream"):
        setattr(torch.cuda, guard, lambda *args: contextlib.nullcontext())
