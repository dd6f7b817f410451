"""The library's convolution; bias and both activations in one pass over it."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def mish(v):
    e = tl.exp(tl.minimum(v, 20.0))
    t = e * (e + 2.0)
    return v * (t / (t + 2.0))


@triton.jit
def bias_mish_twice(y, bias, channels, area, BLOCK: tl.constexpr):
    plane = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + plane * area + at, mask=at < area, other=0.0)
    v += tl.load(bias + plane % channels)
    tl.store(y + plane * area + at, mish(mish(v)), mask=at < area)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = torch.nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        layer = self.conv
        y = F.conv2d(x, layer.weight).contiguous()
        batch, channels = y.shape[:2]
        area = y[0, 0].numel()
        bias_mish_twice[(triton.cdiv(area, 4096), batch * channels)](
            y, layer.bias, channels, area, BLOCK=4096, num_warps=8
        )
        return y
