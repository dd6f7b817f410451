"""As torch.compile: the hidden layers' products are the library's, without its slow bias, and bias and ReLU are one
kernel of ours, in place. The last layer, which has no ReLU, is the library's as a whole."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def add_bias_relu(y, bias, count, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    v = tl.load(y + at, mask=inside) + tl.load(bias + at % columns, mask=inside)
    tl.store(y + at, tl.maximum(v, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, input_size, layer_sizes, output_size):
        super().__init__()
        layers = []
        width = input_size
        for size in layer_sizes:
            layers += [torch.nn.Linear(width, size), torch.nn.ReLU()]
            width = size
        layers.append(torch.nn.Linear(width, output_size))
        self.network = torch.nn.Sequential(*layers)

    @torch.no_grad()
    def forward(self, x):
        layers = [layer for layer in self.network if isinstance(layer, torch.nn.Linear)]
        for layer in layers[:-1]:
            x = torch.mm(x, layer.weight.t())
            grid = (triton.cdiv(x.numel(), 2048),)
            add_bias_relu[grid](x, layer.bias, x.numel(), x.shape[1], BLOCK=2048, num_warps=8)
        return F.linear(x, layers[-1].weight, layers[-1].bias)
