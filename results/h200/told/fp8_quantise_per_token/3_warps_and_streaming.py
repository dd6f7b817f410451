"""Few tokens get more warps and many fewer, with more bytes in flight per thread, and work larger
than the L2 cache is streamed past it; the row's length is a constant."""

import torch
import triton
import triton.language as tl


@triton.jit
def quantise(
    x, values, scales, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, POLICY: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    inside = c < COLUMNS
    at = row * COLUMNS + c
    v = tl.load(x + at, mask=inside, other=0.0, eviction_policy=POLICY).to(tl.float32)
    bits = tl.max(tl.abs(v), 0).to(tl.int32, bitcast=True)
    exponent = (bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32)
    exponent = tl.where(bits == 0, 127, tl.maximum(exponent, 1))
    scale = (exponent << 23).to(tl.float32, bitcast=True)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    rounded = (v * inverse).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    tl.store(values + at, rounded, mask=inside, eviction_policy=POLICY)
    tl.store(scales + row, scale)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        values = torch.empty(rows, columns, dtype=torch.uint8, device=x.device)
        scales = torch.empty(rows, 1, dtype=torch.float32, device=x.device)
        block = triton.next_power_of_2(columns)
        # With a multiprocessor for each row its latency counts: 16 values per thread, else 32.
        per_thread = 16 if rows <= 132 else 32
        quantise[(rows,)](
            x, values, scales,
            COLUMNS=columns, BLOCK=block,
            POLICY="evict_first" if x.numel() * x.element_size() > 32 << 20 else "",
            num_warps=min(32, max(1, block // (32 * per_thread))),
        )
        return values, scales
