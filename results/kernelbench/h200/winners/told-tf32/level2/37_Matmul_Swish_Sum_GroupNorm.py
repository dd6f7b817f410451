"""One kernel: groups lie side by side, and every tile of the product holds whole ones, so that swish, bias and norm are
done where the sums are. Two programs share a multiprocessor: one multiplies while the other finishes."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

BM, BN, BK = 128, 128, 32


@triton.jit
def product_swish_norm(
    x, w, bias, extra, gamma, beta, y, INNER: tl.constexpr, COLUMNS: tl.constexpr, EACH: tl.constexpr, eps,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    across: tl.constexpr = COLUMNS // BN
    m = tl.program_id(0) // across * BM
    n = tl.program_id(0) % across * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, INNER, BK):
        total = tl.dot(x.load([m, k]), w.load([n, k]).T, total, input_precision="tf32")
    column = n + tl.arange(0, BN)
    v = total + tl.load(bias + column)[None, :]
    v = v / (1.0 + tl.exp(-v)) + tl.load(extra + column)[None, :]
    v = tl.reshape(v, (BM, BN // EACH, EACH))
    v -= tl.sum(v, 2)[:, :, None] / EACH
    inverse = 1.0 / tl.sqrt(tl.sum(v * v, 2) / EACH + eps)
    v = tl.reshape(v * inverse[:, :, None], (BM, BN))
    v = v * tl.load(gamma + column)[None, :] + tl.load(beta + column)[None, :]
    row = m + tl.arange(0, BM)
    tl.store(y + row[:, None] * COLUMNS + column[None, :], v)


class ModelNew(torch.nn.Module):
    def __init__(self, in_features, out_features, num_groups, bias_shape):
        super().__init__()
        self.matmul = torch.nn.Linear(in_features, out_features)
        self.bias = torch.nn.Parameter(torch.randn(bias_shape))
        self.group_norm = torch.nn.GroupNorm(num_groups, out_features)

    def forward(self, x):
        x = x.contiguous()
        w, norm = self.matmul.weight, self.group_norm
        rows, inner = x.shape
        columns = w.shape[0]
        each = columns // norm.num_groups
        assert rows % BM == 0 and columns % BN == 0 and inner % BK == 0 and BN % each == 0
        y = x.new_empty(rows, columns)
        product_swish_norm[(rows // BM * (columns // BN),)](
            TensorDescriptor.from_tensor(x, [BM, BK]), TensorDescriptor.from_tensor(w, [BN, BK]),
            self.matmul.bias, self.bias, norm.weight, norm.bias, y,
            INNER=inner, COLUMNS=columns, EACH=each, eps=norm.eps, BM=BM, BN=BN, BK=BK, num_warps=4, num_stages=3,
        )
        return y
