"""Small Triton programs in the form that the compiler's seeds have."""

HEAD = """import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers
"""
ROWS = """
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel"""
BLOCKS = """
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        r0_1 = r0_index"""

# Adds, and scales by the root of the mean square; what was added is stored, and read again.
NORM = f"""{HEAD}

@triton.jit
def norm(
    in_ptr0, in_ptr1, out_ptr0, out_ptr1,
    xnumel: tl.constexpr, r0_numel: tl.constexpr, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr
):{ROWS}
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    x0 = xindex
    _tmp5 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in range(0, r0_numel, R0_BLOCK):{BLOCKS}
        tmp0 = tl.load(in_ptr0 + (r0_1 + 331*x0), r0_mask & xmask, other=0.0)
        tmp1 = tl.load(in_ptr1 + (r0_1), r0_mask, other=0.0)
        tmp2 = tmp0 + tmp1
        tmp4 = tl.broadcast_to(tmp2 * tmp2, [XBLOCK, R0_BLOCK])
        tmp6 = _tmp5 + tmp4
        _tmp5 = tl.where(r0_mask & xmask, tmp6, _tmp5)
        tl.store(out_ptr0 + (r0_1 + 331*x0), tmp2, r0_mask & xmask)
    tmp5 = tl.sum(_tmp5, 1)[:, None]
    for r0_offset in range(0, r0_numel, R0_BLOCK):{BLOCKS}
        tmp7 = tl.load(out_ptr0 + (r0_1 + 331*x0), r0_mask & xmask, other=0.0)
        tmp8 = tl.load(in_ptr1 + (r0_1), r0_mask, other=0.0, eviction_policy='evict_last')
        tmp9 = tmp7 * tl.rsqrt(tmp5 / 331.0 + 1e-06) * tmp8
        tl.store(out_ptr1 + (r0_1 + 331*x0), tmp9, r0_mask & xmask)


def run(x, w):
    buf0 = torch.empty((5, 331), dtype=torch.float32, device=x.device)
    buf1 = torch.empty((5, 331), dtype=torch.float32, device=x.device)
    norm[5,](
        x, w, buf0, buf1, 5, 331, XBLOCK=1, R0_BLOCK=64, num_warps=2, num_stages=1
    )
    return torch.stack([buf0, buf1])


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return run(x, w)
"""

# The logarithm of the sum of powers, in two passes.
LOGSUMEXP = f"""{HEAD}

@triton.jit
def log_sum(
    in_ptr0, out_ptr0,
    xnumel: tl.constexpr, r0_numel: tl.constexpr, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr
):{ROWS}
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    x0 = xindex
    _tmp3 = tl.full([XBLOCK, R0_BLOCK], float("-inf"), tl.float32)
    for r0_offset in range(0, r0_numel, R0_BLOCK):{BLOCKS}
        tmp0 = tl.load(
            in_ptr0 + (r0_1 + 331*x0), r0_mask & xmask, eviction_policy='evict_last', other=0.0
        )
        tmp2 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
        tmp4 = triton_helpers.maximum(_tmp3, tmp2)
        _tmp3 = tl.where(r0_mask & xmask, tmp4, _tmp3)
    tmp3 = triton_helpers.max2(_tmp3, 1)[:, None]
    _tmp10 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in range(0, r0_numel, R0_BLOCK):{BLOCKS}
        tmp5 = tl.load(
            in_ptr0 + (r0_1 + 331*x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0
        )
        tmp7 = tmp5 - tmp3
        tmp8 = tl.exp(tmp7)
        tmp9 = tl.broadcast_to(tmp8, [XBLOCK, R0_BLOCK])
        tmp11 = _tmp10 + tmp9
        _tmp10 = tl.where(r0_mask & xmask, tmp11, _tmp10)
    tmp10 = tl.sum(_tmp10, 1)[:, None]
    tl.store(out_ptr0 + (x0), tmp3 + tl.log(tmp10), xmask)


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        buf0 = torch.empty_strided((5, 1), (1, 5), dtype=torch.float32, device=x.device)
        buf1 = torch.as_strided(buf0, (5,), (1,))
        del buf0
        log_sum[5,](x, buf1, 5, 331, XBLOCK=1, R0_BLOCK=64, num_warps=2, num_stages=1)
        return buf1
"""

# A row as a whole: the largest magnitude, and what is left when divided by it.
WHOLE = f"""{HEAD}

@triton.jit
def scaled(
    in_ptr0, out_ptr0, out_ptr1,
    xnumel: tl.constexpr, r0_numel: tl.constexpr, XBLOCK : tl.constexpr
):
    R0_BLOCK: tl.constexpr = 512{ROWS}
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_mask = r0_index < r0_numel
    r0_1 = r0_index
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_1 + 331*x0), r0_mask & xmask, other=0.0)
    tmp1 = tl.abs(tmp0)
    tmp2 = tl.broadcast_to(tmp1, [XBLOCK, R0_BLOCK])
    tmp4 = tl.where(r0_mask & xmask, tmp2, float("-inf"))
    tmp5 = triton_helpers.max2(tmp4, 1)[:, None].to(tl.float32)
    tmp6 = (tmp0 / tmp5)
    tl.store(out_ptr0 + (x0), tmp5, xmask)
    tl.store(out_ptr1 + (r0_1 + 331*x0), tmp6, r0_mask & xmask)


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        buf0 = torch.empty((5, 1), dtype=torch.float32, device=x.device)
        buf1 = torch.empty((5, 331), dtype=torch.float32, device=x.device)
        scaled[5,](x, buf0, buf1, 5, 331, XBLOCK=1, num_warps=2, num_stages=1)
        return torch.cat([buf0, buf1], 1)
"""

# Two that need nothing of each other, one of them on a grid of two axes.
TWO = f"""{HEAD}

@triton.jit
def halved(in_ptr0, out_ptr0, xnumel: tl.constexpr, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tl.store(out_ptr0 + (x0), tmp0 * 0.5, xmask)


@triton.jit
def turned(
    in_ptr0, out_ptr0,
    ynumel: tl.constexpr, xnumel: tl.constexpr, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr
):
    yoffset = tl.program_id(1) * YBLOCK
    yindex = yoffset + tl.arange(0, YBLOCK)[:, None]
    ymask = yindex < ynumel
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[None, :]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + (xindex + 331*yindex), xmask & ymask)
    tl.store(out_ptr0 + (yindex + 5*xindex), tmp0, xmask & ymask)


class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        buf0 = torch.empty((5, 331), dtype=torch.float32, device=x.device)
        halved[triton.cdiv(1655, 64),](x, buf0, 1655, XBLOCK=64, num_warps=2, num_stages=1)
        buf1 = torch.empty((331, 5), dtype=torch.float32, device=x.device)
        turned[triton.cdiv(331, 32), triton.cdiv(5, 2)](
            x, buf1, 5, 331, YBLOCK=2, XBLOCK=32, num_warps=4, num_stages=1
        )
        return torch.cat([buf0, buf1.T])
"""
TWICE = (
    TWO[: TWO.index("@triton.jit\ndef turned")]
    + '''class ModelNew(torch.nn.Module):
    def forward(self, x, w):
        return torch.cat([self.run(x), self.run(x + 1)])

    def run(self, x):
        """Another launch of the kernel than those that become one."""
        buf0 = torch.empty((5, 331), dtype=torch.float32, device=x.device)
        halved[triton.cdiv(1655, 64),](x, buf0, 1655, XBLOCK=64, num_warps=2, num_stages=1)
        buf1 = torch.empty((331,), dtype=torch.float32, device=x.device)
        halved[triton.cdiv(331, 128),](x, buf1, 331, XBLOCK=128, num_warps=4, num_stages=1)
        buf2 = torch.zeros_like(buf0)
        print(end="")
        halved[triton.cdiv(1655, 64),](x, buf2, 1655, XBLOCK=64, num_warps=2, num_stages=1)
        return torch.cat([buf0, buf1[None], buf2])
'''
)
