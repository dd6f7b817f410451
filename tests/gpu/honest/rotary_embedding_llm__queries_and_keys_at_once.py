"""One launch for queries and keys: a program takes all heads of a token."""

import torch
import triton
import triton.language as tl


@triton.jit
def rotate_heads(x, y, start, heads, half, cosine, sine, HEADS: tl.constexpr, HALF: tl.constexpr):
    h, f = tl.arange(0, HEADS), tl.arange(0, HALF)
    at = start + h[:, None] * (2 * half) + f[None, :]
    inside = (h < heads)[:, None] & (f < half)[None, :]
    low = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(x + at + half, mask=inside, other=0.0).to(tl.float32)
    turned_low = low * cosine[None, :] - high * sine[None, :]
    turned_high = high * cosine[None, :] + low * sine[None, :]
    tl.store(y + at, turned_low.to(y.dtype.element_ty), mask=inside)
    tl.store(y + at + half, turned_high.to(y.dtype.element_ty), mask=inside)


@triton.jit
def rotary(
    query, key, positions, cosines, sines, query_out, key_out, query_heads, key_heads, half,
    QUERY_HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, HALF: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, HALF)
    row = tl.load(positions + token) * half
    cosine = tl.load(cosines + row + f, mask=f < half, other=0.0).to(tl.float32)
    sine = tl.load(sines + row + f, mask=f < half, other=0.0).to(tl.float32)
    start = token * query_heads * 2 * half
    rotate_heads(query, query_out, start, query_heads, half, cosine, sine, QUERY_HEADS, HALF)
    start = token * key_heads * 2 * half
    rotate_heads(key, key_out, start, key_heads, half, cosine, sine, KEY_HEADS, HALF)


POSITIONS = 4096


class ModelNew(torch.nn.Module):
    def __init__(self, features, dtype):
        super().__init__()
        frequencies = 10000.0 ** -(torch.arange(0, features, 2, dtype=torch.float64) / features)
        angles = torch.arange(POSITIONS, dtype=torch.float64)[:, None] * frequencies
        self.register_buffer("cosines", angles.cos().to(getattr(torch, dtype)))
        self.register_buffer("sines", angles.sin().to(getattr(torch, dtype)))

    def forward(self, query, key, positions):
        query, key, positions = query.contiguous(), key.contiguous(), positions.contiguous()
        tokens, query_heads, features = query.shape
        query_out, key_out = torch.empty_like(query), torch.empty_like(key)
        rotary[(tokens,)](
            query, key, positions, self.cosines, self.sines, query_out, key_out,
            query_heads, key.shape[1], features // 2,
            QUERY_HEADS=triton.next_power_of_2(query_heads),
            KEY_HEADS=triton.next_power_of_2(key.shape[1]),
            HALF=triton.next_power_of_2(features // 2),
        )
        return query_out, key_out
