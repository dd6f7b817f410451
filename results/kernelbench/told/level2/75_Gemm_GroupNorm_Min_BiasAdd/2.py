"""The product's tiles hold whole groups, so norm and minimum are made there and the product is
never stored; a second kernel takes the smallest of each row's tiles and adds the bias to it."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tile_of_product(
    x, weight, inner, rows, columns,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):
    """x[m:m + BM] @ weight[n:n + BN].T, and m and n; tiles that share operands follow each other."""
    across = tl.cdiv(columns, BN)
    group = tl.program_id(0) // (GROUP * across)
    deep = tl.minimum(tl.cdiv(rows, BM) - group * GROUP, GROUP)
    m = (group * GROUP + tl.program_id(0) % (GROUP * across) % deep) * BM
    n = tl.program_id(0) % (GROUP * across) // deep * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, inner, BK):
        total = tl.dot(x.load([m, k]), weight.load([n, k]).T, total, input_precision="tf32")
    return total, m, n


@triton.jit
def add_to_all(
    smallest, bias, y, rows, columns, parts,
    PARTS: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
):
    """y[column, row] = bias[column] + the smallest of the row's parts."""
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    p = tl.arange(0, PARTS)
    found = tl.load(
        smallest + p[:, None] * rows + r[None, :],
        mask=(p < parts)[:, None] & (r < rows)[None, :], other=float("inf"),
    )
    low = tl.min(found, 0)
    b = tl.load(bias + c, mask=c < columns, other=0.0)
    at = y + c[:, None] * rows + r[None, :]
    tl.store(at, b[:, None] + low[None, :], mask=(c < columns)[:, None] & (r < rows)[None, :])


@triton.jit
def linear_norm_smallest(
    x, weight, bias, gamma, beta, smallest, rows, columns, inner, eps,
    EACH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):
    total, m, n = tile_of_product(x, weight, inner, rows, columns, BM, BN, BK, GROUP)
    part = n // BN
    m += tl.arange(0, BM)
    n += tl.arange(0, BN)
    inside = n < columns
    v = total + tl.load(bias + n, mask=inside, other=0.0)[None, :]
    v = tl.reshape(v, (BM, BN // EACH, EACH))
    v -= (tl.sum(v, 2) / EACH)[:, :, None]
    v *= (1.0 / tl.sqrt(tl.sum(v * v, 2) / EACH + eps))[:, :, None]
    v = tl.reshape(v, (BM, BN))
    g = tl.load(gamma + n, mask=inside, other=0.0)[None, :]
    b = tl.load(beta + n, mask=inside, other=float("inf"))[None, :]
    tl.store(smallest + part * rows + m, tl.min(v * g + b, 1), mask=m < rows)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_features)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = x.contiguous()
        weight = self.gemm.weight.contiguous()
        rows, inner = x.shape
        columns = weight.shape[0]
        norm = self.group_norm
        bm, bn, bk = 128, 256, 32
        parts = triton.cdiv(columns, bn)
        smallest = x.new_empty(parts, rows)
        linear_norm_smallest[(triton.cdiv(rows, bm) * parts,)](
            TensorDescriptor.from_tensor(x, [bm, bk]),
            TensorDescriptor.from_tensor(weight, [bn, bk]),
            self.gemm.bias, norm.weight, norm.bias, smallest, rows, columns, inner, norm.eps,
            EACH=columns // norm.num_groups,
            BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=8, num_stages=4,
        )
        y = x.new_empty(1, columns, rows, 1)
        add_to_all[(triton.cdiv(rows, 256), triton.cdiv(columns, 64))](
            smallest, self.bias, y, rows, columns, parts,
            PARTS=triton.next_power_of_2(parts), BR=256, BC=64, num_warps=8,
        )
        return y
