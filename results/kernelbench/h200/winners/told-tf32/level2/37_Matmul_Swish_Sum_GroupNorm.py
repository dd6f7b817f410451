"""The library's product; swish, bias and the norm of groups, which lie side by side, in one pass."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def swish_norm(
    y, bias, gamma, beta, columns, eps, GROUPS: tl.constexpr, EACH: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    column = group[:, None] * EACH + tl.arange(0, EACH)[None, :]
    inside = column < columns
    v = tl.load(y + row * columns + column, mask=inside, other=0.0)
    v = v * tl.sigmoid(v) + tl.load(bias + column, mask=inside, other=0.0)
    v -= (tl.sum(v, 1) / EACH)[:, None]
    inverse = 1.0 / tl.sqrt(tl.sum(v * v, 1) / EACH + eps)
    g = tl.load(gamma + column, mask=inside, other=0.0)
    b = tl.load(beta + column, mask=inside, other=0.0)
    tl.store(y + row * columns + column, v * inverse[:, None] * g + b, mask=inside)


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
        swish_norm[(rows, triton.cdiv(norm.num_groups, 32))](
            y, self.bias, norm.weight, norm.bias, columns, norm.eps,
            GROUPS=32, EACH=columns // norm.num_groups, num_warps=4,
        )
        return y
