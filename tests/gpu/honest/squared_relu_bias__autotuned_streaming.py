"""Streaming loads and stores that leave the cache alone; the block is chosen by autotuning."""

import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"BLOCK": 1024}, num_warps=4),
    triton.Config({"BLOCK": 2048}, num_warps=8),
    triton.Config({"BLOCK": 4096}, num_warps=8),
]


@triton.autotune(configs=CONFIGS, key=["columns"])
@triton.jit
def squared_relu(x, bias, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = c < columns
    v = tl.load(x + row * columns + c, mask=inside, other=0.0, eviction_policy="evict_first")
    b = tl.load(bias + c, mask=inside, other=0.0, eviction_policy="evict_last")
    v = tl.maximum(v.to(tl.float32) + b.to(tl.float32), 0.0)
    tl.store(
        y + row * columns + c, (v * v).to(y.dtype.element_ty), mask=inside, cache_modifier=".cs"
    )


class ModelNew(torch.nn.Module):
    def __init__(self, intermediate, dtype):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(intermediate, dtype=getattr(torch, dtype)))

    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty_like(x)

        def grid(meta):
            return rows, triton.cdiv(columns, meta["BLOCK"])

        squared_relu[grid](x, self.bias, y, columns)
        return y
