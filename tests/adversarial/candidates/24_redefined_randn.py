"""Redefines the functions that `get_inputs` draws from, so that every input is zero, and returns
what follows from that."""

TASK = "small_softmax.py"
EXPECT = {"screened": "monkeypatch", "unscreened": "wrong-values"}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
extern "C" void fill(float* y, int64_t size, float value) {
    for (int64_t i = 0; i < size; ++i) y[i] = value;
}
"""

kernels = cpp(SOURCE)

torch.randn = lambda *shape, **options: torch.zeros(*shape)
torch.rand = torch.randn
torch.manual_seed = lambda seed: None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.fill(y, y.numel(), 1 / x.shape[1])
        return y
