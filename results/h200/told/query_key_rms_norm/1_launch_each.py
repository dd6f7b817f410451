"""Baseline: one fused launch for the queries and one for the keys, sixteen heads per program."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, out, rows, features, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (c < features)
    at = row.to(tl.int64) * features + c
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    inverse = tl.rsqrt(tl.sum(v * v, 1) / features + 1e-6)
    scale = tl.load(weight + c, mask=c < features, other=0.0).to(tl.float32)
    tl.store(out + at, v * inverse[:, None] * scale, mask=inside)


def normalised(x, weight):
    x = x.contiguous()
    features = x.shape[-1]
    rows = x.numel() // features
    out = torch.empty_like(x)
    rms_norm[(triton.cdiv(rows, 16),)](
        x, weight, out, rows, features,
        ROWS=16, BLOCK=triton.next_power_of_2(features), num_warps=4,
    )
    return out


class ModelNew(torch.nn.Module):
    def __init__(self, features, dtype):
        super().__init__()
        kind = getattr(torch, dtype)
        self.query_weight = torch.nn.Parameter(1 + 0.3 * torch.randn(features, dtype=kind))
        self.key_weight = torch.nn.Parameter(1 + 0.3 * torch.randn(features, dtype=kind))

    def forward(self, query, key):
        return normalised(query, self.query_weight), normalised(key, self.key_weight)
