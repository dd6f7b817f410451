"""Groups are counted through all tokens, so no tile is partly empty; an exact power of two is multiplied, not divided by."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_quantise(x, values, scales, count, blocks, GROUPS: tl.constexpr):
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    c = tl.arange(0, 128)
    inside = (g < count)[:, None]
    # Group g of all lies at g plus one row of up values for each token before it.
    source = x + (g + g // blocks * blocks).to(tl.int64)[:, None] * 128 + c[None, :]
    gate = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(source + blocks * 128, mask=inside, other=0.0).to(tl.float32)
    product = gate / (1.0 + tl.exp(-gate)) * up
    bits = tl.max(tl.abs(product), 1).to(tl.int32, bitcast=True)
    # At most 1.75 * 2^e becomes at most 448 = 1.75 * 2^8; a larger mantissa needs one step more.
    exponent = (bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32)
    exponent = tl.where(bits == 0, 127, tl.maximum(exponent, 1))
    scale = (exponent << 23).to(tl.float32, bitcast=True)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    coded = (product * inverse[:, None]).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    tl.store(values + g.to(tl.int64)[:, None] * 128 + c[None, :], coded, mask=inside)
    tl.store(scales + g, scale, mask=g < count)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        tokens, blocks = x.shape[0], x.shape[1] // 256
        values = torch.empty(tokens, blocks * 128, dtype=torch.uint8, device=x.device)
        scales = torch.empty(tokens, blocks, dtype=torch.float32, device=x.device)
        count = tokens * blocks
        silu_quantise[(triton.cdiv(count, 16),)](
            x, values, scales, count, blocks, GROUPS=16, num_warps=4
        )
        return values, scales
