"""A standing grid that walks over tiles, which block pointers load with boundary checks."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, rows, columns, inner, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    across = tl.cdiv(columns, BN)
    tiles = tl.cdiv(rows, BM) * across
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        m, n = (tile // across) * BM, (tile % across) * BN
        left_block = tl.make_block_ptr(a, (rows, inner), (inner, 1), (m, 0), (BM, BK), (1, 0))
        right_block = tl.make_block_ptr(
            b, (inner, columns), (columns, 1), (0, n), (BK, BN), (1, 0)
        )
        total = tl.zeros((BM, BN), tl.float32)
        for _ in range(0, inner, BK):
            left = tl.load(left_block, boundary_check=(0, 1), padding_option="zero")
            right = tl.load(right_block, boundary_check=(0, 1), padding_option="zero")
            total = tl.dot(left, right, total)
            left_block = tl.advance(left_block, (0, BK))
            right_block = tl.advance(right_block, (BK, 0))
        out_block = tl.make_block_ptr(c, (rows, columns), (columns, 1), (m, n), (BM, BN), (1, 0))
        tl.store(out_block, total.to(c.dtype.element_ty), boundary_check=(0, 1))


def processors(device):
    if device.type != "cuda":
        return 2
    return torch.cuda.get_device_properties(device).multi_processor_count


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        rows, inner = a.shape
        columns = b.shape[1]
        c = torch.empty(rows, columns, dtype=a.dtype, device=a.device)
        deep = 64 if a.element_size() == 2 else 32
        tiles = triton.cdiv(rows, 128) * triton.cdiv(columns, 128)
        matmul[(min(tiles, processors(a.device)),)](
            a, b, c, rows, columns, inner, BM=128, BN=128, BK=deep, num_warps=8, num_stages=3
        )
        return c
