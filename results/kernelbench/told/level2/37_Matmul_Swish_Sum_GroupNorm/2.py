"""The library's product; swish, bias and the norm of groups, which lie side by side, in one pass.

The pass goes from the last row to the first: what the product wrote last is still in the cache.
"""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def swish_norm(
    y, bias, gamma, beta, columns, eps,
    ROWS: tl.constexpr, GROUPS: tl.constexpr, EACH: tl.constexpr,
):
    """ROWS rows, one after the other, of the same columns, whose parameters are read once."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    column = group[:, None] * EACH + tl.arange(0, EACH)[None, :]
    extra = tl.load(bias + column)
    g = tl.load(gamma + column)
    b = tl.load(beta + column)
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * ROWS
    at = y + first.to(tl.int64) * columns + column
    for row in range(ROWS):
        v = tl.load(at + row * columns)
        v = v * tl.sigmoid(v) + extra
        v -= (tl.sum(v, 1) / EACH)[:, None]
        inverse = 1.0 / tl.sqrt(tl.sum(v * v, 1) / EACH + eps)
        tl.store(at + row * columns, v * inverse[:, None] * g + b)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.group_norm = torch.nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        y = F.linear(x, self.matmul.weight, self.matmul.bias)
        rows, columns = y.shape
        norm = self.group_norm
        # Rows and groups come in multiples of what a program takes.
        swish_norm[(norm.num_groups // 16, rows // 16)](
            y, self.bias, norm.weight, norm.bias, columns, norm.eps,
            ROWS=16, GROUPS=16, EACH=columns // norm.num_groups, num_warps=4, num_stages=3,
        )
        return y
