"""Keys and values are read where they lie, a block of positions at a time through the page table."""

import torch
import triton
import triton.language as tl


@triton.jit
def paged_attention(
    query, keys, values, table, lengths, out, key_heads, shared, pages, page_size, features, scale,
    BG: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    request = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    g, d = tl.arange(0, BG), tl.arange(0, BD)
    own = (request * key_heads + head) * shared + g
    inside = (g < shared)[:, None] & (d < features)[None, :]
    q = tl.load(query + own[:, None] * features + d[None, :], mask=inside, other=0.0)
    length = tl.load(lengths + request).to(tl.int32)
    total = tl.zeros((BG, BD), tl.float32)
    largest = tl.full((BG,), -1e30, tl.float32)
    weight_sum = tl.zeros((BG,), tl.float32)
    for start in range(0, length, BN):
        n = start + tl.arange(0, BN)
        seen = n < length
        page = tl.load(table + request * pages + n // page_size, mask=seen, other=0)
        slot = ((page * page_size + n % page_size) * key_heads + head) * features
        k = tl.load(
            keys + slot[None, :] + d[:, None], mask=seen[None, :] & (d < features)[:, None], other=0.0
        )
        scores = tl.where(seen[None, :], tl.dot(q, k) * scale, -float("inf"))
        higher = tl.maximum(largest, tl.max(scores, 1))
        fading = tl.exp2(largest - higher)
        p = tl.exp2(scores - higher[:, None])
        v = tl.load(
            values + slot[:, None] + d[None, :], mask=seen[:, None] & (d < features)[None, :], other=0.0
        )
        total = tl.dot(p.to(v.dtype), v, total * fading[:, None])
        weight_sum = weight_sum * fading + tl.sum(p, 1)
        largest = higher
    total = total / weight_sum[:, None]
    tl.store(
        out + own[:, None] * features + d[None, :], total.to(out.dtype.element_ty), mask=inside
    )


class ModelNew(torch.nn.Module):
    def forward(self, query, keys, values, page_table, lengths):
        query, keys, values = query.contiguous(), keys.contiguous(), values.contiguous()
        page_table = page_table.contiguous()
        batch, query_heads, features = query.shape
        page_size, key_heads = keys.shape[1:3]
        shared = query_heads // key_heads
        out = torch.empty_like(query)
        paged_attention[(batch, key_heads)](
            query, keys, values, page_table, lengths, out, key_heads, shared,
            page_table.shape[1], page_size, features, features**-0.5 * 1.4426950408889634,
            BG=max(16, triton.next_power_of_2(shared)),
            BN=64 if query.element_size() == 2 else 32,
            BD=max(16, triton.next_power_of_2(features)),
            num_warps=4, num_stages=3,
        )
        return out
