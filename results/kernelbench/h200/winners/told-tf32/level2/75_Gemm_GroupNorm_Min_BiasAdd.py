"""The library's product; then per row the norm of all groups and the minimum, which no pass stores
in between; then minimum and bias of all pairs."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


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
def smallest_of_row(
    v, gamma, beta, smallest, columns, eps, GROUPS: tl.constexpr, EACH: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, GROUPS)[:, None] * EACH + tl.arange(0, EACH)[None, :]
    inside = column < columns
    t = tl.load(v + row * columns + column, mask=inside, other=0.0)
    t -= (tl.sum(t, 1) / EACH)[:, None]
    inverse = 1.0 / tl.sqrt(tl.sum(t * t, 1) / EACH + eps)
    g = tl.load(gamma + column, mask=inside, other=0.0)
    b = tl.load(beta + column, mask=inside, other=float("inf"))
    t = t * inverse[:, None] * g + b
    tl.store(smallest + row, tl.min(tl.min(t, 1), 0))


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.gemm = torch.nn.Linear(in_features, out_features)
        self.group_norm = torch.nn.GroupNorm(num_groups, out_features)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        v = F.linear(x, self.gemm.weight, self.gemm.bias)
        rows, columns = v.shape
        norm = self.group_norm
        smallest = v.new_empty(rows)
        smallest_of_row[(rows,)](
            v, norm.weight, norm.bias, smallest, columns, norm.eps,
            GROUPS=triton.next_power_of_2(norm.num_groups), EACH=columns // norm.num_groups,
            num_warps=8,
        )
        y = v.new_empty(1, columns, rows, 1)
        add_to_all[(triton.cdiv(rows, 256), triton.cdiv(columns, 16))](
            smallest, self.bias, y, rows, columns, 1, PARTS=1, BR=256, BC=16, num_warps=4
        )
        return y
