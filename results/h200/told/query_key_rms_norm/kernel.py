"""The features are a constant, so that 72 and 100 also load 16 bytes at once; the weight is loaded
before the sum; small work gets small programs, large work 64 bytes in flight per thread."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(
    x, weight, out, first, rows,
    FEATURES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    row = first + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (c < FEATURES)
    at = row.to(tl.int64) * FEATURES + c
    v = tl.load(x + at, mask=inside, other=0.0)
    scale = tl.load(weight + c, mask=c < FEATURES, other=0.0).to(tl.float32)
    v = v.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(v * v, 1) * (1.0 / FEATURES) + 1e-6)
    tl.store(out + at, v * inverse[:, None] * scale, mask=inside)


@triton.jit
def query_key_rms_norm(
    query, key, query_weight, key_weight, query_out, key_out,
    query_rows, key_rows, query_programs,
    FEATURES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    if program < query_programs:
        first = program * ROWS
        rms_norm(query, query_weight, query_out, first, query_rows, FEATURES, ROWS, BLOCK)
    else:
        first = (program - query_programs) * ROWS
        rms_norm(key, key_weight, key_out, first, key_rows, FEATURES, ROWS, BLOCK)


class ModelNew(torch.nn.Module):
    def __init__(self, features, dtype):
        super().__init__()
        kind = getattr(torch, dtype)
        self.query_weight = torch.nn.Parameter(1 + 0.3 * torch.randn(features, dtype=kind))
        self.key_weight = torch.nn.Parameter(1 + 0.3 * torch.randn(features, dtype=kind))

    def forward(self, query, key):
        query, key = query.contiguous(), key.contiguous()
        features = query.shape[-1]
        query_rows, key_rows = query.numel() // features, key.numel() // features
        query_out, key_out = torch.empty_like(query), torch.empty_like(key)
        block = triton.next_power_of_2(features)
        # 128 threads, and for each of them this many loads of 16 bytes in each program.
        everything = (query_rows + key_rows) * block * query.element_size()
        loads = min(4, max(1, everything // (132 * 16 * 128 * 8)))
        loads = triton.next_power_of_2(loads)
        rows = max(1, loads * 128 * 16 // query.element_size() // block)
        query_programs = triton.cdiv(query_rows, rows)
        query_key_rms_norm[(query_programs + triton.cdiv(key_rows, rows),)](
            query, key, self.query_weight, self.key_weight, query_out, key_out,
            query_rows, key_rows, query_programs,
            FEATURES=features, ROWS=rows, BLOCK=block, num_warps=4,
        )
        return query_out, key_out
