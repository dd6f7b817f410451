"""A small module, and kernels that compute the same."""

from __future__ import annotations

import torch
from torch import nn

from kernel_smith.shipping.folder import PACKAGE, own_imports
from kernel_smith.shipping.live import live_task, read_calls
from kernel_smith.shipping.runtime.replacement import Replacement
from kernel_smith.shipping.runtime.spec import Spec
from kernel_smith.shipping.runtime.state import fingerprint

WIDTH = 64
EPSILON = 1e-6

NORM_KERNEL = '''
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

extern "C" void norm(const float* x, const float* weight, float* y, int64_t rows, int64_t n,
                     float epsilon) {
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += double(x[r * n + i]) * x[r * n + i];
        float factor = 1 / std::sqrt(float(sum / n) + epsilon);
        for (int64_t i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] * factor * weight[i];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[-1]
        kernels.norm(x, self.weight, y, x.numel() // n, n, 1e-6)
        return y
'''


class RMSNorm(nn.Module):
    """As Llama has it."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.epsilon = EPSILON

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale rows to a mean square of one."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def replacement_of(module: nn.Module, examples: object, kernel: str) -> Replacement:
    """As if a run had found the kernel for the module."""
    task = live_task(module, read_calls(module, examples))
    spec = Spec(
        name=task.name,
        kernel=own_imports(kernel),
        reference=task.source,
        workloads={one.name: dict(one.params) for one in task.workloads},
        device="cpu",
        fingerprint=fingerprint(module),
        facts={"backend": "cpp"},
    )
    return Replacement(spec, None, PACKAGE)
