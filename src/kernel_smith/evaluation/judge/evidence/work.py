"""How much a reference must move and compute for one call.

Two numbers of bytes, because they serve different ends:

* `floor_bytes` is what no implementation can avoid: writing the outputs. It may be used against a
  candidate. Outputs that share memory with inputs or parameters are left out.
* `traffic_bytes` is what a good implementation moves: every input and parameter read once, every
  output written once. It explains a time. Of a table that is only looked up in, just the rows that
  were taken count, and of a tensor that is sliced, just the slices. Where a kernel can know more
  than the reference's operators show (a mask that hides whole blocks, lengths that end a loop
  early), even less may do, so this is no floor.

`flops` are those of the reference's matrix products, convolutions and attention, in full: masks are
not taken into account. They explain a time as well, and are no floor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference
from kernel_smith.evaluation.judge.operations import OperationMode
from kernel_smith.evaluation.sandbox.tree import flatten_result
from kernel_smith.records import Precision, Workload

_LOOKUPS = frozenset(
    {torch.ops.aten.index, torch.ops.aten.index_select, torch.ops.aten.gather}
    | {torch.ops.aten.embedding, torch.ops.aten.take}
)

_OF_DTYPE = {
    torch.float64: "fp64",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8",
}


@dataclass(frozen=True)
class Work:
    """One call of the reference."""

    floor_bytes: int
    traffic_bytes: int
    flops: int
    precision: str


def count_work(reference: Reference, workload: Workload, inputs: InputSet) -> Work:
    """Calls the reference once, on the inputs' device. May raise what the reference raises."""
    model = reference.model(workload)
    copies = reference.protected(workload, inputs)
    sources = [*copies.tensors, *model.parameters(), *model.buffers()]
    outputs: list[torch.Tensor] = []
    with torch.no_grad(), _Counting(sources) as counted:
        flatten_result(model(*copies.arguments()), outputs)
    held = {_storage(tensor) for tensor in sources}
    written = _distinct_bytes(tensor for tensor in outputs if _storage(tensor) not in held)
    return Work(
        floor_bytes=written,
        traffic_bytes=written + counted.read(),
        flops=counted.flops,
        precision=choose_precision(sources, reference.task.precision),
    )


def choose_precision(tensors: Iterable[torch.Tensor], allowed: Precision) -> str:
    """The fastest arithmetic that the task allows on its data, by the dtype of most of it.

    Float32 in full is not always the limit: splitting numbers into coarser parts can be faster.
    """
    sizes: Counter[torch.dtype] = Counter()
    for tensor in tensors:
        sizes[tensor.dtype] += tensor.numel() * tensor.element_size()
    floating = {dtype: size for dtype, size in sizes.items() if dtype.is_floating_point}
    if not floating:
        return "int8" if torch.int8 in sizes or torch.uint8 in sizes else "fp32"
    main = max(floating, key=lambda dtype: floating[dtype])
    if main in (torch.float32, torch.float64) and allowed is not Precision.STRICT:
        return allowed.value
    return _OF_DTYPE.get(main, "fp32")


class _Counting(OperationMode):  # type: ignore[no-untyped-call]
    """Counts the bytes that operators read of some tensors, each byte of them at most once, and the
    operations of products.

    PyTorch knows how many an operator takes; its own counter would import its compiler.
    """

    def __init__(self, sources: list[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._sizes = _storage_bytes(sources)
        self._read: Counter[int] = Counter()
        self.flops = 0

    def read(self) -> int:
        return sum(min(read, self._sizes[key]) for key, read in self._read.items())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        count = flop_registry.get(func.overloadpacket)
        if count is not None:
            self.flops += int(count(*args, **(kwargs or {}), out_val=result))
        if not func.is_view:
            for tensor in tree_leaves((args, kwargs)):
                if isinstance(tensor, torch.Tensor) and _storage(tensor) in self._sizes:
                    self._read[_storage(tensor)] += _taken(func, args, tensor, result)
        return result


def _taken(func: Any, args: tuple[Any, ...], tensor: torch.Tensor, result: Any) -> int:
    """How many bytes of one argument an operator needs."""
    whole = _extent(tensor)
    if func.overloadpacket in _LOOKUPS and tensor is args[0]:
        return min(whole, _extent(result))
    return whole


def _extent(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _storage(tensor: torch.Tensor) -> int:
    """Identifies the memory behind a tensor for as long as it lives, also on the device `meta`."""
    return int(tensor.untyped_storage()._cdata)


def _storage_bytes(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    """Storage -> the bytes of it that the tensors cover, overlaps counted once at the most."""
    covered: Counter[int] = Counter()
    whole: dict[int, int] = {}
    for tensor in tensors:
        covered[_storage(tensor)] += _extent(tensor)
        whole[_storage(tensor)] = tensor.untyped_storage().nbytes()
    return {key: min(size, whole[key]) for key, size in covered.items()}


def _distinct_bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(_storage_bytes(tensors).values())
