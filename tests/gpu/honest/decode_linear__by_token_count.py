"""Products and sums for a single token, tensor cores for several: one kernel for each."""

import torch
import triton
import triton.language as tl


@triton.jit
def one_token(x, weight, y, inputs, outputs, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN, BK), tl.float32)
    for start in range(0, inputs, BK):
        k = start + tl.arange(0, BK)
        v = tl.load(x + k, mask=k < inputs, other=0.0).to(tl.float32)
        w = tl.load(
            weight + n.to(tl.int64)[:, None] * inputs + k[None, :],
            mask=(n < outputs)[:, None] & (k < inputs)[None, :],
            other=0.0,
            eviction_policy="evict_first",
        )
        total += w.to(tl.float32) * v[None, :]
    tl.store(y + n, tl.sum(total, 1), mask=n < outputs)


@triton.jit
def few_tokens(
    x, weight, y, tokens, inputs, outputs, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, inputs, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(
            x + m[:, None] * inputs + k[None, :],
            mask=(m < tokens)[:, None] & (k < inputs)[None, :],
            other=0.0,
        )
        right = tl.load(
            weight + n.to(tl.int64)[None, :] * inputs + k[:, None],
            mask=(k < inputs)[:, None] & (n < outputs)[None, :],
            other=0.0,
        )
        total = tl.dot(left, right, total)
    at = y + m[:, None] * outputs + n[None, :]
    tl.store(at, total.to(y.dtype.element_ty), mask=(m < tokens)[:, None] & (n < outputs)[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self, inputs, outputs, dtype):
        super().__init__()
        weight = torch.randn(outputs, inputs, dtype=getattr(torch, dtype)) * inputs**-0.5
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x):
        x, weight = x.contiguous(), self.weight.contiguous()
        tokens, inputs = x.shape
        outputs = weight.shape[0]
        y = torch.empty(tokens, outputs, dtype=x.dtype, device=x.device)
        if tokens == 1:
            one_token[(triton.cdiv(outputs, 8),)](
                x, weight, y, inputs, outputs, BN=8, BK=512, num_warps=4
            )
        else:
            few_tokens[(triton.cdiv(outputs, 32), triton.cdiv(tokens, 16))](
                x, weight, y, tokens, inputs, outputs,
                BM=16, BN=32, BK=128, num_warps=4, num_stages=4,
            )
        return y
