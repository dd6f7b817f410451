"""Small versions of real blocks: one operation is optimized, the model patched, and trained on."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm
from torch import nn

import kernel_smith


class LlamaBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = RMSNorm(), RMSNorm()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.gate, self.up = nn.Linear(WIDTH, 128), nn.Linear(WIDTH, 128)
        self.down = nn.Linear(128, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class NormRelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(x))


class ResNetBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(8, 8, 3, padding=1, bias=False) for _ in range(2))
        self.after1, self.after2 = NormRelu(), NormRelu()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.after2(self.conv2(self.after1(self.conv1(x))))


class ViTBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.mlp(self.norm2(x))


NORM_RELU_KERNEL = '''
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

extern "C" void norm_relu(const float* x, const float* mean, const float* variance,
                          const float* weight, const float* bias, float* y,
                          int64_t images, int64_t channels, int64_t pixels) {
    for (int64_t i = 0; i < images * channels; ++i) {
        int64_t c = i % channels;
        float factor = weight[c] / std::sqrt(variance[c] + 1e-5f);
        for (int64_t p = 0; p < pixels; ++p) {
            float v = (x[i * pixels + p] - mean[c]) * factor + bias[c];
            y[i * pixels + p] = v > 0 ? v : 0;
        }
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(8)

    def forward(self, x):
        y = torch.empty_like(x)
        n = self.norm
        kernels.norm_relu(
            x, n.running_mean, n.running_var, n.weight, n.bias, y,
            x.shape[0], x.shape[1], x.shape[2] * x.shape[3],
        )
        return y
'''

LAYER_NORM_KERNEL = '''
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

extern "C" void layer_norm(const float* x, const float* weight, const float* bias, float* y,
                           int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * n;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; ++i) sum += in[i];
        double mean = sum / n;
        for (int64_t i = 0; i < n; ++i) squares += (in[i] - mean) * (in[i] - mean);
        double factor = 1 / std::sqrt(squares / n + 1e-5);
        for (int64_t i = 0; i < n; ++i)
            y[r * n + i] = float((in[i] - mean) * factor) * weight[i] + bias[i];
    }
}
""")


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))
        self.bias = torch.nn.Parameter(torch.zeros(64))

    def forward(self, input):
        y = torch.empty_like(input)
        kernels.layer_norm(input, self.weight, self.bias, y, input.numel() // 64, 64)
        return y
'''


def arguments_of(model: nn.Module, name: str, x: torch.Tensor) -> tuple[Any, ...]:
    """What a module of a model is called with."""
    seen: list[tuple[Any, ...]] = []
    hook = model.get_submodule(name).register_forward_pre_hook(lambda _, given: seen.append(given))
    with torch.no_grad():
        model(x)
    hook.remove()
    return seen[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the kernel is slower")  # nothing here is about speed
@pytest.mark.usefixtures("quick_runs")
@pytest.mark.parametrize(
    ("model", "shape", "operation", "kernel", "replaced"),
    [
        pytest.param(
            *(LlamaBlock(), (2, 16, WIDTH), "first", NORM_KERNEL, ["first", "second"]),
            marks=pytest.mark.sweep,  # with the module and the kernel of most other tests
        ),
        (ResNetBlock(), (2, 8, 16, 16), "after1", NORM_RELU_KERNEL, ["after1", "after2"]),
        (ViTBlock(), (2, 16, WIDTH), "norm1", LAYER_NORM_KERNEL, ["norm1", "norm2"]),
    ],
)
def test_an_operation_is_optimized_within_its_model(
    model: nn.Module,
    shape: tuple[int, ...],
    operation: str,
    kernel: str,
    replaced: list[str],
    tmp_path: Path,
) -> None:
    model.eval()
    plain, x = copy.deepcopy(model), torch.randn(shape)
    found = kernel_smith.optimize(
        model.get_submodule(operation),
        arguments_of(model, operation, x),
        starts=[kernel],
        proposers=["mutator"],
        evaluations=1,
        store=tmp_path / "runs.sqlite",
        progress=False,
    )
    assert found.patch(model) == replaced
    with torch.no_grad():
        torch.testing.assert_close(model(x), plain(x), rtol=1e-4, atol=1e-5)
    assert [model.get_submodule(name).counts.kernel for name in replaced] == [1, 1]
    _train_both(model.train(), plain.train(), x)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(x), plain.eval()(x), rtol=1e-4, atol=1e-5)
    assert [model.get_submodule(name).counts.kernel for name in replaced] == [2, 2]
    assert found.unpatch(model) == replaced


def _train_both(model: nn.Module, plain: nn.Module, x: torch.Tensor) -> None:
    """One step of training, which must change both alike."""
    for each in (model, plain):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.01)
        each(x).square().mean().backward()
        optimizer.step()
    for (name, found), expected in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, msg=name)
        torch.testing.assert_close(found, expected, msg=name)
