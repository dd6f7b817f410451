"""Work larger than the L2 cache is streamed (first to be evicted, the weights last), and where the
rows divide evenly among the programs no row is masked."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(
    x, weight, out, first, rows,
    FEATURES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    EVEN: tl.constexpr, POLICY: tl.constexpr,
):
    row = first + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    inside = c < FEATURES
    if not EVEN:
        inside = (row < rows) & inside
    at = row.to(tl.int64) * FEATURES + c
    v = tl.load(x + at, mask=inside, other=0.0, eviction_policy=POLICY)
    scale = tl.load(weight + c, mask=c < FEATURES, other=0.0, eviction_policy="evict_last")
    scale = scale.to(tl.float32)
    v = v.to(tl.float32)
    inverse = tl.rsqrt(tl.sum(v * v, 1) * (1.0 / FEATURES) + 1e-6)
    tl.store(out + at, v * inverse[:, None] * scale, mask=inside, eviction_policy=POLICY)


@triton.jit
def query_key_rms_norm(
    query, key, query_weight, key_weight, query_out, key_out,
    query_rows, key_rows, query_programs,
    FEATURES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    EVEN: tl.constexpr, POLICY: tl.constexpr,
):
    program = tl.program_id(0)
    if program < query_programs:
        first = program * ROWS
        rms_norm(
            query, query_weight, query_out, first, query_rows,
            FEATURES, ROWS, BLOCK, EVEN, POLICY,
        )
    else:
        first = (program - query_programs) * ROWS
        rms_norm(
            key, key_weight, key_out, first, key_rows,
            FEATURES, ROWS, BLOCK, EVEN, POLICY,
        )


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
            FEATURES=features, ROWS=rows, BLOCK=block,
            EVEN=query_rows % rows == 0 and key_rows % rows == 0,
            POLICY="evict_first" if everything > 32 << 20 else "", num_warps=4,
        )
        return query_out, key_out
