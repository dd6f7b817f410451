"""One fused pass: each program quantises up to 16 groups of 128 values of one token, the scale from exponent bits."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_quantise(x, values, scales, blocks, GROUPS: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    g = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    at = g[:, None] * 128 + tl.arange(0, 128)[None, :]
    inside = (g < blocks)[:, None]
    start = x + token * blocks * 256
    gate = tl.load(start + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + blocks * 128 + at, mask=inside, other=0.0).to(tl.float32)
    product = gate / (1.0 + tl.exp(-gate)) * up
    bits = tl.max(tl.abs(product), 1).to(tl.int32, bitcast=True)
    # At most 1.75 * 2^e becomes at most 448 = 1.75 * 2^8; a larger mantissa needs one step more.
    exponent = (bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32)
    exponent = tl.where(bits == 0, 127, tl.maximum(exponent, 1))
    scale = (exponent << 23).to(tl.float32, bitcast=True)
    coded = (product / scale[:, None]).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    tl.store(values + token * blocks * 128 + at, coded, mask=inside)
    tl.store(scales + token * blocks + g, scale, mask=g < blocks)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        tokens, blocks = x.shape[0], x.shape[1] // 256
        values = torch.empty(tokens, blocks * 128, dtype=torch.uint8, device=x.device)
        scales = torch.empty(tokens, blocks, dtype=torch.float32, device=x.device)
        silu_quantise[(tokens, triton.cdiv(blocks, 16))](
            x, values, scales, blocks, GROUPS=16, num_warps=4
        )
        return values, scales
