"""The library's products, of the input and of the hidden state into the same sums, so that the two are never joined;
bias and tanh in one pass over them."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

batch_size = 256


@triton.jit
def add_bias_tanh(sums, bias, count, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(sums + at, mask=at < count, other=0.0) + tl.load(bias + at % columns, mask=at < count, other=0.0)
    tl.store(sums + at, 1.0 - 2.0 / (tl.exp(2.0 * v) + 1.0), mask=at < count)


class ModelNew(torch.nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden = torch.randn((batch_size, hidden_size))
        self.i2h = torch.nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = torch.nn.Linear(hidden_size, output_size)

    @torch.no_grad()
    def forward(self, x, initial_hidden=None):
        before = self.hidden.to(x.device) if initial_hidden is None else initial_hidden
        w = self.i2h.weight
        inputs = x.shape[1]
        hidden = torch.mm(x, w[:, :inputs].t())
        hidden.addmm_(before, w[:, inputs:].t())
        add_bias_tanh[(triton.cdiv(hidden.numel(), 2048),)](
            hidden, self.i2h.bias, hidden.numel(), w.shape[0], BLOCK=2048, num_warps=8
        )
        self.hidden = hidden
        return F.linear(hidden, self.h2o.weight, self.h2o.bias)
