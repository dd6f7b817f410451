"""As 1.py, but bias, ReLU and the sum of the parts belong to the product: whichever part of a tile is done last joins them, so
that no kernel is launched for it."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BM, BN, BK, STAGES = 128, 256, 32, 4


@triton.jit
def join(
    partial, bias, y, n, rows, columns,
    PARTS: tl.constexpr, RELU: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    c = n + tl.arange(0, BN)
    b = tl.load(bias + c, mask=c < columns, other=0.0)[None, :]
    for strip in range(0, BM, 16):  # for which there are registers
        r = strip + tl.arange(0, 16)
        inside = (r < rows)[:, None] & (c < columns)[None, :]
        at = r[:, None] * columns + c[None, :]
        total = b + tl.zeros((16, BN), tl.float32)
        for part in tl.static_range(PARTS):
            total += tl.load(partial + part * rows * columns + at, mask=inside, other=0.0, cache_modifier=".cg")
        if RELU:
            total = tl.maximum(total, 0.0)
        tl.store(y + at, total, mask=inside)


@triton.jit
def linear_layer(
    x, w, bias, partial, arrived, y, rows, columns, section,
    PARTS: tl.constexpr, RELU: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    tile = tl.program_id(0)
    n = tile * BN
    part = tl.program_id(1)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(part * section, part * section + section, BK):
        total = tl.dot(x.load([0, k]), w.load([n, k]).T, total, input_precision="tf32")
    r = tl.arange(0, BM)
    c = n + tl.arange(0, BN)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    at = r[:, None] * columns + c[None, :]
    if PARTS == 1:
        total += tl.load(bias + c, mask=c < columns, other=0.0)[None, :]
        if RELU:
            total = tl.maximum(total, 0.0)
        tl.store(y + at, total, mask=inside)
    else:
        tl.store(partial + part * rows * columns + at, total, mask=inside)
        tl.debug_barrier()
        # Whoever comes last joins the parts, always in the same order.
        if tl.atomic_add(arrived + tile, 1, sem="acq_rel") == PARTS - 1:
            join(partial, bias, y, n, rows, columns, PARTS, RELU, BM, BN)


def linear(x, layer, relu, arrived):
    rows, inner = x.shape
    columns = layer.out_features
    tiles = triton.cdiv(columns, BN)
    parts = 4 if tiles <= 32 else 2 if tiles <= 64 else 1
    y = torch.empty(rows, columns, device=x.device, dtype=torch.float32)
    partial = torch.empty(parts, rows, columns, device=x.device, dtype=torch.float32) if parts > 1 else y
    linear_layer[(tiles, parts)](
        TensorDescriptor.from_tensor(x, [BM, BK]), TensorDescriptor.from_tensor(layer.weight, [BN, BK]),
        layer.bias, partial, arrived, y, rows, columns, inner // parts,
        PARTS=parts, RELU=relu, BM=BM, BN=BN, BK=BK, num_warps=8, num_stages=STAGES,
    )
    return y


class ModelNew(torch.nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers = []
        width = input_size
        for size in layer_sizes:
            layers += [torch.nn.Linear(width, size), torch.nn.ReLU()]
            width = size
        layers.append(torch.nn.Linear(width, output_size))
        self.network = torch.nn.Sequential(*layers)

    @torch.no_grad()
    def forward(self, x):
        assert x.shape[0] <= BM
        layers = [layer for layer in self.network if isinstance(layer, torch.nn.Linear)]
        x = x.contiguous()
        most = max(triton.cdiv(layer.out_features, BN) for layer in layers)
        arrived = torch.zeros(len(layers), most, dtype=torch.int32, device=x.device)
        for number, layer in enumerate(layers):
            x = linear(x, layer, layer is not layers[-1], arrived[number])
        return x
