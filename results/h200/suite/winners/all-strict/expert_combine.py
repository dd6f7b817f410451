"""What torch.compile makes of expert_combine; call it under torch.no_grad()."""

import torch
import triton
import triton.language as tl


@triton.jit
def triton_poi_fused_add_index_mul_sum_unsqueeze_0(in_out_ptr0, in_ptr0, in_ptr1, in_ptr2, in_ptr3, xnumel: tl.constexpr, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x1 = xindex // 1003
    x0 = (xindex % 1003)
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (3*x1), xmask, eviction_policy='evict_last')
    tmp6 = tl.load(in_ptr2 + (3*x1), xmask, eviction_policy='evict_last')
    tmp8 = tl.load(in_ptr0 + (1 + 3*x1), xmask, eviction_policy='evict_last')
    tmp13 = tl.load(in_ptr2 + (1 + 3*x1), xmask, eviction_policy='evict_last')
    tmp16 = tl.load(in_ptr0 + (2 + 3*x1), xmask, eviction_policy='evict_last')
    tmp21 = tl.load(in_ptr2 + (2 + 3*x1), xmask, eviction_policy='evict_last')
    tmp24 = tl.load(in_ptr3 + (x2), xmask)
    tmp1 = tl.full([XBLOCK], 39, tl.int32)
    tmp2 = tmp0 + tmp1
    tmp3 = tmp0 < 0
    tmp4 = tl.where(tmp3, tmp2, tmp0)
    tmp5 = tl.load(in_ptr1 + (x0 + 1003*tmp4), xmask)
    tmp7 = tmp5 * tmp6
    tmp9 = tmp8 + tmp1
    tmp10 = tmp8 < 0
    tmp11 = tl.where(tmp10, tmp9, tmp8)
    tmp12 = tl.load(in_ptr1 + (x0 + 1003*tmp11), xmask)
    tmp14 = tmp12 * tmp13
    tmp15 = tmp7 + tmp14
    tmp17 = tmp16 + tmp1
    tmp18 = tmp16 < 0
    tmp19 = tl.where(tmp18, tmp17, tmp16)
    tmp20 = tl.load(in_ptr1 + (x0 + 1003*tmp19), xmask)
    tmp22 = tmp20 * tmp21
    tmp23 = tmp15 + tmp22
    tmp25 = tmp23 + tmp24
    tl.store(in_out_ptr0 + (x2), tmp25, xmask)


@triton.jit
def triton_per_fused__to_copy_add_index_mul_sum_unsqueeze_0(in_ptr0, in_ptr1, in_ptr2, in_ptr3, out_ptr1, xnumel: tl.constexpr, r0_numel: tl.constexpr, XBLOCK : tl.constexpr):
    R0_BLOCK: tl.constexpr = 8
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_2 = r0_index
    x1 = xindex // 7168
    x0 = (xindex % 7168)
    x3 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_2 + 8*x1), None, eviction_policy='evict_last')
    tmp7 = tl.load(in_ptr2 + (r0_2 + 8*x1), None, eviction_policy='evict_last')
    tmp12 = tl.load(in_ptr3 + (x3), None, eviction_policy='evict_last').to(tl.float32)
    tmp1 = tl.full([1, 1], 1024, tl.int32)
    tmp2 = tmp0 + tmp1
    tmp3 = tmp0 < 0
    tmp4 = tl.where(tmp3, tmp2, tmp0)
    tmp5 = tl.load(in_ptr1 + (x0 + 7168*tmp4), None).to(tl.float32)
    tmp6 = tmp5.to(tl.float32)
    tmp8 = tmp6 * tmp7
    tmp9 = tl.broadcast_to(tmp8, [XBLOCK, R0_BLOCK])
    tmp11 = tl.sum(tmp9, 1)[:, None].to(tl.float32)
    tmp13 = tmp12.to(tl.float32)
    tmp14 = tmp11 + tmp13
    tmp15 = tmp14.to(tl.float32)
    tl.store(out_ptr1 + (x3), tmp15, None)


@triton.jit
def triton_per_fused__to_copy_add_index_mul_sum_unsqueeze_0_prefill(in_ptr0, in_ptr1, in_ptr2, in_ptr3, out_ptr1, xnumel: tl.constexpr, r0_numel: tl.constexpr, XBLOCK : tl.constexpr):
    R0_BLOCK: tl.constexpr = 8
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_2 = r0_index
    x1 = xindex // 7168
    x0 = (xindex % 7168)
    x3 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_2 + 8*x1), None, eviction_policy='evict_last')
    tmp7 = tl.load(in_ptr2 + (r0_2 + 8*x1), None, eviction_policy='evict_last')
    tmp12 = tl.load(in_ptr3 + (x3), None, eviction_policy='evict_last').to(tl.float32)
    tmp1 = tl.full([1, 1], 32768, tl.int32)
    tmp2 = tmp0 + tmp1
    tmp3 = tmp0 < 0
    tmp4 = tl.where(tmp3, tmp2, tmp0)
    tmp5 = tl.load(in_ptr1 + (x0 + 7168*tmp4), None).to(tl.float32)
    tmp6 = tmp5.to(tl.float32)
    tmp8 = tmp6 * tmp7
    tmp9 = tl.broadcast_to(tmp8, [XBLOCK, R0_BLOCK])
    tmp11 = tl.sum(tmp9, 1)[:, None].to(tl.float32)
    tmp13 = tmp12.to(tl.float32)
    tmp14 = tmp11 + tmp13
    tmp15 = tmp14.to(tl.float32)
    tl.store(out_ptr1 + (x3), tmp15, None)


@triton.jit
def triton_poi_fused_add_index_mul_sum_unsqueeze_0_odd(in_ptr0, in_ptr1, in_ptr2, in_ptr3, out_ptr1, xnumel: tl.constexpr, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x1 = xindex // 5001
    x0 = (xindex % 5001)
    x2 = xindex
    tmp0 = tl.load(in_ptr0 + (6*x1), xmask, eviction_policy='evict_last')
    tmp6 = tl.load(in_ptr2 + (6*x1), xmask, eviction_policy='evict_last')
    tmp8 = tl.load(in_ptr0 + (1 + 6*x1), xmask, eviction_policy='evict_last')
    tmp13 = tl.load(in_ptr2 + (1 + 6*x1), xmask, eviction_policy='evict_last')
    tmp16 = tl.load(in_ptr0 + (2 + 6*x1), xmask, eviction_policy='evict_last')
    tmp21 = tl.load(in_ptr2 + (2 + 6*x1), xmask, eviction_policy='evict_last')
    tmp24 = tl.load(in_ptr0 + (3 + 6*x1), xmask, eviction_policy='evict_last')
    tmp29 = tl.load(in_ptr2 + (3 + 6*x1), xmask, eviction_policy='evict_last')
    tmp32 = tl.load(in_ptr0 + (4 + 6*x1), xmask, eviction_policy='evict_last')
    tmp37 = tl.load(in_ptr2 + (4 + 6*x1), xmask, eviction_policy='evict_last')
    tmp40 = tl.load(in_ptr0 + (5 + 6*x1), xmask, eviction_policy='evict_last')
    tmp45 = tl.load(in_ptr2 + (5 + 6*x1), xmask, eviction_policy='evict_last')
    tmp48 = tl.load(in_ptr3 + (x2), xmask)
    tmp1 = tl.full([XBLOCK], 11994, tl.int32)
    tmp2 = tmp0 + tmp1
    tmp3 = tmp0 < 0
    tmp4 = tl.where(tmp3, tmp2, tmp0)
    tmp5 = tl.load(in_ptr1 + (x0 + 5001*tmp4), xmask)
    tmp7 = tmp5 * tmp6
    tmp9 = tmp8 + tmp1
    tmp10 = tmp8 < 0
    tmp11 = tl.where(tmp10, tmp9, tmp8)
    tmp12 = tl.load(in_ptr1 + (x0 + 5001*tmp11), xmask)
    tmp14 = tmp12 * tmp13
    tmp15 = tmp7 + tmp14
    tmp17 = tmp16 + tmp1
    tmp18 = tmp16 < 0
    tmp19 = tl.where(tmp18, tmp17, tmp16)
    tmp20 = tl.load(in_ptr1 + (x0 + 5001*tmp19), xmask)
    tmp22 = tmp20 * tmp21
    tmp23 = tmp15 + tmp22
    tmp25 = tmp24 + tmp1
    tmp26 = tmp24 < 0
    tmp27 = tl.where(tmp26, tmp25, tmp24)
    tmp28 = tl.load(in_ptr1 + (x0 + 5001*tmp27), xmask)
    tmp30 = tmp28 * tmp29
    tmp31 = tmp23 + tmp30
    tmp33 = tmp32 + tmp1
    tmp34 = tmp32 < 0
    tmp35 = tl.where(tmp34, tmp33, tmp32)
    tmp36 = tl.load(in_ptr1 + (x0 + 5001*tmp35), xmask)
    tmp38 = tmp36 * tmp37
    tmp39 = tmp31 + tmp38
    tmp41 = tmp40 + tmp1
    tmp42 = tmp40 < 0
    tmp43 = tl.where(tmp42, tmp41, tmp40)
    tmp44 = tl.load(in_ptr1 + (x0 + 5001*tmp43), xmask)
    tmp46 = tmp44 * tmp45
    tmp47 = tmp39 + tmp46
    tmp49 = tmp47 + tmp48
    tl.store(out_ptr1 + (x2), tmp49, xmask)


def run_small(outputs, places, weights, shared):
    buf1 = torch.empty(13, 1003, dtype=torch.float32, device=outputs.device)
    triton_poi_fused_add_index_mul_sum_unsqueeze_0[triton.cdiv(13039, 128),](
        buf1, places, outputs, weights, shared, 13039, XBLOCK=128, num_warps=4, num_stages=1
    )
    return buf1


def run_decode(outputs, places, weights, shared):
    buf1 = torch.empty(128, 7168, dtype=torch.bfloat16, device=outputs.device)
    triton_per_fused__to_copy_add_index_mul_sum_unsqueeze_0[triton.cdiv(917504, 128),](
        places, outputs, weights, shared, buf1, 917504, 8, XBLOCK=128, num_warps=1, num_stages=1
    )
    return buf1


def run_prefill(outputs, places, weights, shared):
    buf1 = torch.empty(4096, 7168, dtype=torch.bfloat16, device=outputs.device)
    triton_per_fused__to_copy_add_index_mul_sum_unsqueeze_0_prefill[triton.cdiv(29360128, 256),](
        places, outputs, weights, shared, buf1, 29360128, 8, XBLOCK=256, num_warps=1,
        num_stages=1
    )
    return buf1


def run_odd(outputs, places, weights, shared):
    buf1 = torch.empty(1999, 5001, dtype=torch.float32, device=outputs.device)
    triton_poi_fused_add_index_mul_sum_unsqueeze_0_odd[triton.cdiv(9996999, 512),](
        places, outputs, weights, shared, buf1, 9996999, XBLOCK=512, num_warps=8, num_stages=1
    )
    return buf1


class ModelNew(torch.nn.Module):
    def forward(self, outputs: torch.Tensor, places: torch.Tensor, weights: torch.Tensor, shared: torch.Tensor):
        known = (outputs.shape, outputs.dtype, places.shape, places.dtype, weights.shape, weights.dtype, shared.shape, shared.dtype)
        if known == ((39, 1003), torch.float32, (13, 3), torch.int64, (13, 3), torch.float32, (13, 1003), torch.float32):
            return run_small(
                outputs.contiguous(), places.contiguous(), weights.contiguous(), shared.contiguous()
            )
        if known == ((1024, 7168), torch.bfloat16, (128, 8), torch.int64, (128, 8), torch.float32, (128, 7168), torch.bfloat16):
            return run_decode(
                outputs.contiguous(), places.contiguous(), weights.contiguous(), shared.contiguous()
            )
        if known == ((32768, 7168), torch.bfloat16, (4096, 8), torch.int64, (4096, 8), torch.float32, (4096, 7168), torch.bfloat16):
            return run_prefill(
                outputs.contiguous(), places.contiguous(), weights.contiguous(), shared.contiguous()
            )
        if known == ((11994, 5001), torch.float32, (1999, 6), torch.int64, (1999, 6), torch.float32, (1999, 5001), torch.float32):
            return run_odd(
                outputs.contiguous(), places.contiguous(), weights.contiguous(), shared.contiguous()
            )
        raise ValueError(f"made for the workloads small, decode, prefill, odd; got {known}")
