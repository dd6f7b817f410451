"""The limits of this device, measured once and then remembered.

A datasheet promises more than any kernel gets. What a large copy and a large matrix product reach
here is a limit that a kernel can be held against.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import torch
from pydantic import ValidationError

from kernel_smith.evaluation.judge.evidence.device import describe_device
from kernel_smith.inline.cache import cache_root, keep_text
from kernel_smith.records import Ceilings, Device
from kernel_smith.records.base import content_hash

_COPY_BYTES = (256 << 20, 1 << 30)
_COPY_REPEATS = 24
_LARGEST_MATRIX = 8192
_SMALLEST_MATRIX = 2048
_PRODUCT_SECONDS = 0.03  # the longest product that is tried
_PRODUCT_REPEATS = (3, 20)
_REPEATED_SECONDS = 0.03
_GRAPH_KERNELS = 500
_GRAPH_REPLAYS = 10

Product = Callable[[], torch.Tensor]


def ceilings(device: Device, measure: Callable[[], Ceilings] | None = None) -> Ceilings:
    """The limits of `device`, from the user's cache or measured now on CUDA device 0."""
    key = content_hash(device.name, device.capability, device.driver, torch.__version__)
    path = cache_root() / "devices" / f"{key}.json"
    with contextlib.suppress(OSError, ValidationError, UnicodeDecodeError):
        return Ceilings.model_validate_json(path.read_text(encoding="utf-8"))
    measured = (measure or measure_ceilings)()
    keep_text(path, measured.model_dump_json(indent=2) + "\n")
    return measured


def measure_ceilings(index: int = 0) -> Ceilings:
    """About a second on a large GPU, which should have nothing else to do."""
    device = describe_device(index)
    with torch.cuda.device(index), torch.no_grad():
        copy = _copy_bytes_per_second()
        flops = _flops_per_second()
        launch = _launch_seconds()
        torch.cuda.empty_cache()
    return Ceilings(
        device=device,
        copy_bytes_per_second=copy,
        flops_per_second=flops,
        launch_seconds=launch,
        versions={"torch": torch.__version__, "cuda": device.runtime, "driver": device.driver},
        measured_at=datetime.now(UTC),
    )


def _copy_bytes_per_second() -> float:
    free, _ = torch.cuda.mem_get_info()
    return max(_copy_rate(min(size, free // 4)) for size in _COPY_BYTES)


def _copy_rate(size: int) -> float:
    source = torch.empty(size, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    return 2 * size / min(_times(lambda: target.copy_(source), _COPY_REPEATS))


def _flops_per_second() -> dict[str, float]:
    measured = {}
    for precision, make in _PRODUCTS.items():
        # Not every device and not every version of torch has every precision.
        unsupported = contextlib.suppress(RuntimeError, ValueError, AttributeError)
        with unsupported, _float32_matmul("high" if precision == "tf32" else "highest"):
            measured[precision] = _product_flops_per_second(make)
    return measured


def _product_flops_per_second(make: Callable[[int], Product]) -> float:
    """The best of several sizes and products, as large as the device is fast.

    Larger is not always faster: a short product is over before its power lowers the clock.
    """
    size, best = _SMALLEST_MATRIX, 0.0
    while True:
        product = make(size)
        seconds = min(_times(product, 2))
        fewest, most = _PRODUCT_REPEATS
        repeats = max(fewest, min(most, int(_REPEATED_SECONDS / seconds)))
        best = max(best, 2.0 * size**3 / min(_times(product, repeats)))
        if size == _LARGEST_MATRIX or seconds * 8 > _PRODUCT_SECONDS:
            return best
        size *= 2


def _plain(dtype: torch.dtype) -> Callable[[int], Product]:
    def make(size: int) -> Product:
        a = torch.randn(size, size, device="cuda").to(dtype)
        b = torch.randn(size, size, device="cuda").to(dtype)
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    return make


def _fp8(size: int) -> Product:
    dtype = torch.float8_e4m3fn
    a = torch.randn(size, size, device="cuda").to(dtype)
    b = torch.randn(size, size, device="cuda").to(dtype).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(
        a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def _int8(size: int) -> Product:
    a, b = (
        torch.randint(-128, 128, (size, size), dtype=torch.int8, device="cuda") for _ in range(2)
    )
    return lambda: torch._int_mm(a, b.t())


# The short ones first, on a device that is still cool.
_PRODUCTS: dict[str, Callable[[int], Product]] = {
    "fp8": _fp8,
    "int8": _int8,
    "bf16": _plain(torch.bfloat16),
    "fp16": _plain(torch.float16),
    "tf32": _plain(torch.float32),
    "fp32": _plain(torch.float32),
    "fp64": _plain(torch.float64),
}


@contextlib.contextmanager
def _float32_matmul(precision: str) -> Iterator[None]:
    """`highest` computes float32 products in float32, `high` in TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _launch_seconds() -> float:
    """Per kernel, in a graph of kernels that return at once and wait for each other."""
    graph = torch.cuda.CUDAGraph()
    _launch_empty()  # loads the kernel, which capturing must not do
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(_GRAPH_KERNELS):
            _launch_empty()
    return min(_times(graph.replay, _GRAPH_REPLAYS)) / _GRAPH_KERNELS


def _launch_empty() -> None:
    torch.cuda._sleep(0)  # type: ignore[no-untyped-call]


def _times(work: Callable[[], object], repeats: int) -> list[float]:
    """Seconds on the device of each of `repeats` runs, after one that is not counted."""
    marks: list[Any] = [
        torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        for _ in range(repeats + 1)
    ]
    work()
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1000 for begin, end in itertools.pairwise(marks)]
