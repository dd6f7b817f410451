"""Convolutions by the library, everything between them in two authored kernels."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def normalise_relu(
    x, residual, mean, variance, y, count, area, channels,
    HAS_RESIDUAL: tl.constexpr, BLOCK: tl.constexpr,
):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    channel = (at // area) % channels
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    m = tl.load(mean + channel, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(variance + channel, mask=inside, other=1.0).to(tl.float32)
    v = (v - m) / tl.sqrt_rn(s + 1e-5)
    if HAS_RESIDUAL:
        v += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, tl.maximum(v, 0.0).to(y.dtype.element_ty), mask=inside)


@triton.jit
def spatial_maximum(x, y, area, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, area, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + plane * area + c, mask=c < area, other=-float("inf"))
        largest = tl.maximum(largest, v.to(tl.float32))
    tl.store(y + plane, tl.max(largest, 0).to(y.dtype.element_ty))


def normalised(x, residual, mean, variance):
    x = x.contiguous()
    y = torch.empty_like(x)
    area, channels = x.shape[2] * x.shape[3], x.shape[1]
    normalise_relu[(triton.cdiv(x.numel(), 1024),)](
        x, x if residual is None else residual, mean, variance, y, x.numel(), area, channels,
        HAS_RESIDUAL=residual is not None, BLOCK=1024,
    )
    return y


class Block(torch.nn.Module):
    def __init__(self, channels, kind):
        super().__init__()
        self.first = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False, dtype=kind)
        self.second = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False, dtype=kind)
        self.register_buffer("mean", 0.1 * torch.randn(2, channels, dtype=kind))
        self.register_buffer("variance", torch.rand(2, channels, dtype=kind) * 0.3 + 0.1)

    def forward(self, x):
        inner = normalised(self.first(x), None, self.mean[0], self.variance[0])
        return normalised(self.second(inner), x, self.mean[1], self.variance[1])


class ModelNew(torch.nn.Module):
    def __init__(self, channels, classes, dtype):
        super().__init__()
        kind = getattr(torch, dtype)
        self.stem = torch.nn.Conv2d(3, channels, 3, padding=1, dtype=kind)
        self.blocks = torch.nn.Sequential(Block(channels, kind), Block(channels, kind))
        self.classifier = torch.nn.Linear(channels, classes, dtype=kind)

    def forward(self, images):
        features = self.blocks(F.relu(self.stem(images)).contiguous())
        batch, channels, height, width = features.shape
        pooled = torch.empty(batch, channels, dtype=features.dtype, device=features.device)
        spatial_maximum[(batch * channels,)](features, pooled, height * width, BLOCK=1024)
        return self.classifier(pooled)
