"""Lets Inductor write Triton kernels for a GPU that is not there.

Tensors are fake, with shapes and no memory. What Inductor asks the device is answered for the GPU
below; whatever would have to run is left out.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

_CAPABILITY = (9, 0)
_PROPERTIES = SimpleNamespace(
    name="sm_90",
    gcnArchName="",
    major=_CAPABILITY[0],
    minor=_CAPABILITY[1],
    multi_processor_count=132,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
    shared_memory_per_multiprocessor=228 << 10,
    warp_size=32,
    total_memory=80 << 30,
    L2_cache_size=50 << 20,
)


@functools.cache
def has_gpu() -> bool:
    """Asked before `pretend_cuda`, which changes what torch answers."""
    return torch.cuda.is_available()


@functools.cache
def fake_tensors() -> FakeTensorMode:
    """One mode for all tensors, because two cannot meet in one graph."""
    return FakeTensorMode(allow_non_fake_inputs=True)


@functools.cache
def pretend_cuda() -> None:
    """From here on, torch and Triton believe in a GPU: the process is good for nothing else."""
    import torch._dynamo.device_interface as interfaces
    import torch._inductor.fx_passes.joint_graph as joint
    import torch._inductor.fx_passes.post_grad as post_grad
    import torch._subclasses.fake_tensor as fakes
    import triton

    _answer(
        torch.cuda,
        is_available=True,
        is_initialized=True,
        device_count=1,
        current_device=0,
        get_device_capability=_CAPABILITY,
        get_device_properties=_PROPERTIES,
        is_bf16_supported=True,
        synchronize=None,
        get_rng_state=torch.zeros(16, dtype=torch.uint8),
        set_rng_state=None,
        _lazy_init=None,
        _exchange_device=0,
        _maybe_exchange_device=0,
        _get_device_properties=_PROPERTIES,
    )
    _answer(
        interfaces.CudaInterface,
        is_available=True,
        current_device=0,
        get_compute_capability=10 * _CAPABILITY[0] + _CAPABILITY[1],
        get_device_properties=_PROPERTIES,
        get_raw_stream=0,
    )
    _answer(interfaces.CudaInterface.Worker, get_device_properties=_PROPERTIES)
    _answer(fakes, init_gpu_context=None)  # a torch that was built for CUDA would look for a driver
    torch.Tensor.copy_ = _copy_  # type: ignore[assignment,method-assign]
    # These draw up patterns with real tensors of the device.
    _answer(joint, lazy_init=None)
    _answer(post_grad, lazy_init=None)
    triton.runtime.driver.set_active(_Driver())


def move_to_cuda(
    graph_module: torch.fx.GraphModule, values: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Turn a graph for the CPU into one for the GPU; gives the tensors to compile it with."""
    for node in graph_module.graph.nodes:
        if str(node.kwargs.get("device", "")).startswith("cpu"):
            node.update_kwarg("device", torch.device("cuda", 0))
    graph_module.recompile()
    with fake_tensors():
        return [
            torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")
            for value in values
        ]


def _answer(owner: Any, **answers: Any) -> None:
    for name, answer in answers.items():
        function = functools.partial(_always, answer)
        setattr(owner, name, staticmethod(function) if isinstance(owner, type) else function)


def _always(answer: Any, *arguments: Any, **named: Any) -> Any:
    return answer


def _copy_(tensor: torch.Tensor, source: Any, non_blocking: bool = False) -> torch.Tensor:
    """Call the operator, as the method does once it has switched to the tensor's device."""
    copied: torch.Tensor = torch.ops.aten.copy_.default(tensor, source, non_blocking)
    return copied


class _Driver:
    """What Triton asks a driver before it launches anything."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 10 * _CAPABILITY[0] + _CAPABILITY[1], 32)

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)
