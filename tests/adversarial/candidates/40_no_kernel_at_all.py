"""Has no kernel: the library does everything."""

TASK = "small_softmax.py"
EXPECT = {"screened": "no-kernel-source", "unscreened": "no-authored-kernel"}

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
