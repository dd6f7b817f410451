"""What torch.compile makes of squared_relu_bias; call it under torch.no_grad()."""

import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers


@triton.jit
def triton_poi_fused_add_pow_relu_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 58029
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x2 = xindex
    x0 = (xindex % 2001)
    tmp0 = tl.load(in_ptr0 + (x2), xmask)
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy='evict_last')
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = triton_helpers.maximum(tmp3, tmp2)
    tmp5 = tmp4 * tmp4
    tl.store(out_ptr0 + (x2), tmp5, xmask, eviction_policy="evict_first")


@triton.jit
def triton_poi_fused_add_pow_relu_0_decode(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 2097152
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = tl.full([XBLOCK], True, tl.int1)[:]
    x2 = xindex
    x0 = (xindex % 16384)
    tmp0 = tl.load(in_ptr0 + (x2), None).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (x0), None, eviction_policy='evict_last').to(tl.float32)
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = triton_helpers.maximum(tmp3, tmp2)
    tmp5 = tmp4 * tmp4
    tl.store(out_ptr0 + (x2), tmp5, None, cache_modifier=".cs")


@triton.jit
def triton_poi_fused_add_pow_relu_0_prefill(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 75497472
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = tl.full([XBLOCK], True, tl.int1)[:]
    x2 = xindex
    x0 = (xindex % 9216)
    tmp0 = tl.load(in_ptr0 + (x2), None).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (x0), None, eviction_policy='evict_last').to(tl.float32)
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = triton_helpers.maximum(tmp3, tmp2)
    tmp5 = tmp4 * tmp4
    tl.store(out_ptr0 + (x2), tmp5, None)


@triton.jit
def triton_poi_fused_add_pow_relu_0_odd(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 18867199
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x2 = xindex
    x0 = (xindex % 9217)
    tmp0 = tl.load(in_ptr0 + (x2), xmask)
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy='evict_last')
    tmp2 = tmp0 + tmp1
    tmp3 = tl.full([1], 0, tl.int32)
    tmp4 = triton_helpers.maximum(tmp3, tmp2)
    tmp5 = tmp4 * tmp4
    tl.store(out_ptr0 + (x2), tmp5, xmask)


def run_small(bias, x):
    buf0 = torch.empty((29, 2001), dtype=torch.float32, device=bias.device)
    triton_poi_fused_add_pow_relu_0[triton.cdiv(58029, 256),](
        x, bias, buf0, 58029, XBLOCK=256, num_warps=4, num_stages=1
    )
    return buf0


def run_decode(bias, x):
    buf0 = torch.empty((128, 16384), dtype=torch.bfloat16, device=bias.device)
    triton_poi_fused_add_pow_relu_0_decode[triton.cdiv(2097152, 512),](
        x, bias, buf0, 2097152, XBLOCK=512, num_warps=8, num_stages=1
    )
    return buf0


def run_prefill(bias, x):
    buf0 = torch.empty((8192, 9216), dtype=torch.bfloat16, device=bias.device)
    triton_poi_fused_add_pow_relu_0_prefill[triton.cdiv(75497472, 1024),](
        x, bias, buf0, 75497472, XBLOCK=1024, num_warps=4, num_stages=1
    )
    return buf0


def run_odd(bias, x):
    buf0 = torch.empty((2047, 9217), dtype=torch.float32, device=bias.device)
    triton_poi_fused_add_pow_relu_0_odd[triton.cdiv(18867199, 1024),](
        x, bias, buf0, 18867199, XBLOCK=1024, num_warps=8, num_stages=1
    )
    return buf0


class ModelNew(torch.nn.Module):
    def __init__(self, intermediate: int, dtype: str) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(intermediate, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor):
        known = (x.shape, x.dtype)
        if known == ((29, 2001), torch.float32):
            return run_small(self.bias, x.contiguous())
        if known == ((128, 16384), torch.bfloat16):
            return run_decode(self.bias, x.contiguous())
        if known == ((8192, 9216), torch.bfloat16):
            return run_prefill(self.bias, x.contiguous())
        if known == ((2047, 9217), torch.float32):
            return run_odd(self.bias, x.contiguous())
        raise ValueError(f"made for the workloads small, decode, prefill, odd; got {known}")
