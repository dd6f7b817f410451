"""As many programs as the GPU holds; each walks over rows and keeps weight and bias in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm(x, weight, bias, y, rows, hidden, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    inside = c < hidden
    w = tl.load(weight + c, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + c, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = row * hidden + c
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        mean = tl.sum(v, 0) / hidden
        centred = tl.where(inside, v - mean, 0.0)
        inverse = 1.0 / tl.sqrt_rn(tl.sum(centred * centred, 0) / hidden + 1e-6)
        tl.store(y + at, centred * inverse * w + b, mask=inside)


def resident_programs(device):
    if device.type != "cuda":
        return 4
    return 8 * torch.cuda.get_device_properties(device).multi_processor_count


class ModelNew(torch.nn.Module):
    def __init__(self, hidden, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))
        self.bias = torch.nn.Parameter(torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x):
        x = x.contiguous()
        hidden = x.shape[-1]
        rows = x.numel() // hidden
        y = torch.empty_like(x)
        programs = min(rows, resident_programs(x.device))
        block = triton.next_power_of_2(hidden)
        layer_norm[(programs,)](x, self.weight, self.bias, y, rows, hidden, BLOCK=block)
        return y
