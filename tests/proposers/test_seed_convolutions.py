"""Kernels of our own for convolutions: of all kinds, laid out in all ways, against the library."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreted import Interpreter

from kernel_smith.inline import cpp
from kernel_smith.proposers.seed import make_seed
from kernel_smith.proposers.seed.cpp_text import cpp_source
from kernel_smith.proposers.seed.own_cpp import CppKernels
from kernel_smith.proposers.seed.own_triton import TritonKernels
from kernel_smith.records import Precision

KINDS: dict[str, tuple[torch.nn.Module, tuple[int, ...]]] = {
    "plain": (torch.nn.Conv2d(5, 14, 3), (2, 5, 9, 40)),
    "padded": (torch.nn.Conv2d(4, 3, 5, padding=2, bias=False), (1, 4, 6, 7)),
    "with steps": (torch.nn.Conv2d(3, 16, 7, stride=2, padding=3), (2, 3, 33, 21)),
    "with holes": (torch.nn.Conv2d(6, 7, 3, padding=(4, 1), dilation=(3, 2)), (1, 6, 12, 11)),
    "wider than the image": (torch.nn.Conv2d(2, 2, 3, padding=6, dilation=5), (1, 2, 2, 3)),
    "one tap": (torch.nn.Conv2d(40, 30, 1), (3, 40, 5, 5)),
    "one tap with steps": (torch.nn.Conv2d(8, 8, 1, stride=3), (1, 8, 10, 8)),
    "in groups": (torch.nn.Conv2d(12, 18, 3, groups=3, padding=1), (2, 12, 6, 6)),
    "depthwise": (torch.nn.Conv2d(6, 12, 3, groups=6, stride=2), (2, 6, 9, 9)),
    "depthwise, large filter": (torch.nn.Conv2d(5, 5, 7, groups=5, padding=3), (1, 5, 14, 14)),
    "depthwise, many lines": (
        torch.nn.Conv2d(3, 3, (5, 3), groups=3, stride=(1, 3), padding=(2, 4), dilation=(2, 3)),
        (2, 3, 61, 80),
    ),
    "depthwise, narrow": (torch.nn.Conv2d(2, 4, 3, groups=2, padding=1, bias=False), (1, 2, 9, 3)),
    "depthwise in pairs": (torch.nn.Conv2d(6, 6, 3, groups=3, padding=4), (1, 6, 7, 20)),
    "depthwise volumes": (torch.nn.Conv3d(2, 2, 3, groups=2, stride=2, padding=1), (1, 2, 6, 7, 9)),
    "depthwise, long": (torch.nn.Conv1d(3, 6, 5, groups=3, padding=4, dilation=2), (1, 3, 5000)),
    "of lines": (torch.nn.Conv1d(5, 4, 4, stride=3, dilation=2, padding=1), (3, 5, 50)),
    "of volumes": (torch.nn.Conv3d(3, 4, (2, 3, 5), padding=(1, 0, 2)), (2, 3, 5, 6, 7)),
    "transposed": (torch.nn.ConvTranspose2d(5, 6, 3), (2, 5, 6, 7)),
    "transposed with steps": (
        torch.nn.ConvTranspose2d(4, 6, (3, 5), stride=(2, 3), padding=1, output_padding=(1, 2)),
        (2, 4, 5, 6),
    ),
    "transposed with holes": (
        torch.nn.ConvTranspose2d(3, 4, 3, stride=2, dilation=2, padding=1),
        (1, 3, 5, 4),
    ),
    "transposed with odd holes": (
        torch.nn.ConvTranspose2d(3, 4, 3, stride=(5, 2), dilation=(2, 3), padding=1),
        (1, 3, 3, 4),
    ),
    "transposed, many channels": (
        torch.nn.ConvTranspose3d(7, 18, 3, stride=2, padding=1, output_padding=1),
        (3, 7, 2, 3, 11),
    ),
    "transposed, to many channels": (
        torch.nn.ConvTranspose2d(2, 9, 3, padding=1, dilation=(1, 2)),
        (2, 2, 6, 7),
    ),
    "transposed in groups": (
        torch.nn.ConvTranspose1d(8, 12, 4, stride=2, groups=4, bias=False),
        (2, 8, 9),
    ),
    "transposed depthwise": (torch.nn.ConvTranspose2d(3, 3, 3, groups=3, stride=2), (1, 3, 4, 4)),
    "transposed volumes": (torch.nn.ConvTranspose3d(2, 3, 3, stride=(2, 1, 2)), (1, 2, 3, 4, 3)),
    "transposed, steps beyond taps": (torch.nn.ConvTranspose2d(2, 3, 2, stride=3), (1, 2, 4, 3)),
    "transposed, one tap, a longer result": (
        torch.nn.ConvTranspose3d(2, 3, (1, 2, 2), dilation=(2, 1, 1), output_padding=(1, 0, 0)),
        (2, 2, 2, 3, 3),
    ),
    **{
        f"depthwise, {taps} taps": (
            torch.nn.Conv2d(37, 37, taps, padding=taps // 2, groups=37),
            (1, 37, side, side),
        )
        for taps, side in ((3, 28), (5, 19), (7, 14))
    },
}
FEW = [
    *("with steps", "in groups", "depthwise", "of volumes"),
    *("transposed with steps", "transposed, many channels"),
]
# What differs from another kind in its sizes, or in what yet another shows.
ALIKE = [
    *("plain", "padded", "one tap with steps", "of lines", "depthwise volumes"),
    *("transposed", "transposed depthwise", "transposed volumes"),
    *("depthwise, 3 taps", "depthwise, 7 taps"),
]
LIBRARY_CALL = """
assert_size_stride(x, {x_size}, {x_stride})
assert_size_stride(weight, {w_size}, {w_stride})
assert_size_stride(bias, ({channels},), (1,))
buf0 = extern_kernels.convolution(x, weight, {bias}stride={stride}, padding={padding},
    dilation={dilation}, transposed={transposed}, output_padding={output_padding}, groups={groups})
assert_size_stride(buf0, {y_size}, {y_stride}, 'torch.ops.aten.convolution.default')
"""


def call_of(module: Any, x: torch.Tensor, weight: torch.Tensor, y: torch.Tensor) -> list[ast.stmt]:
    """What the compiler writes for a convolution of tensors that lie like these."""
    text = LIBRARY_CALL.format(
        x_size=tuple(x.shape),
        x_stride=x.stride(),
        w_size=tuple(weight.shape),
        w_stride=weight.stride(),
        y_size=tuple(y.shape),
        y_stride=y.stride(),
        channels=y.shape[1],
        bias="bias=None, " if module.bias is None else "bias, ",
        stride=module.stride,
        padding=module.padding,
        dilation=module.dilation,
        transposed=module.transposed,
        output_padding=module.output_padding,
        groups=module.groups,
    )
    return ast.parse(text).body


def laid_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if layout == "plain" or tensor.dim() not in formats:
        return tensor.contiguous()
    return tensor.contiguous(memory_format=formats[tensor.dim()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kinds", "layout", "dtype"),
    [
        pytest.param([kind for kind in KINDS if kind not in ALIKE], "plain", torch.float32),
        # What is computed is the same template: a few show that types and layouts are.
        pytest.param(FEW, "channels last", torch.float32),
        pytest.param(ALIKE, "plain", torch.float32, marks=pytest.mark.sweep),
        pytest.param(FEW, "plain", torch.float64, marks=pytest.mark.sweep),
    ],
    ids=["plain", "channels last", "more", "double"],
)
def test_a_convolution_is_the_librarys(kinds: list[str], layout: str, dtype: torch.dtype) -> None:
    """And no compiler warns of it."""
    calls, texts = [], {}
    for kind in kinds:
        module, size = KINDS[kind]
        module = module.to(dtype)
        x = laid_out(torch.randn(size, dtype=dtype), layout)
        weight = laid_out(module.weight.detach(), layout)
        with torch.no_grad():
            expected = laid_out(module(x), layout)
        body = call_of(module, x, weight, expected)
        own = CppKernels(body, {"x": str(dtype)})
        assert own.replace(body[3], lambda node: node) is not None, kind
        ((name, text),) = own.texts.items()
        unique = f"{name}_{len(calls)}"
        texts[unique] = text.replace(name, unique)
        calls.append((kind, unique, module.bias, x, weight, expected))
    kernels = cpp(cpp_source(list(texts.values())), ["-Wall", "-Wextra", "-Werror"])
    for kind, name, bias, x, weight, expected in calls:
        found = torch.full_like(expected, torch.nan)
        given = [] if bias is None else [bias.detach()]
        tensors = [_in_one_piece(tensor) for tensor in (x, weight, found)]
        getattr(kernels, name)(*given, *tensors)
        torch.testing.assert_close(
            found, expected, rtol=1e-4, atol=1e-4, msg=lambda text, kind=kind: f"{kind}: {text}"
        )


def _in_one_piece(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory in the order in which it lies; a kernel knows itself what is where."""
    return tensor.as_strided((tensor.numel(),), (1,))


def test_what_has_no_kernel_of_ours_stays_with_the_library() -> None:
    module, x = torch.nn.Conv2d(2, 3, 3), torch.randn(1, 2, 5, 5)
    y = module(x)
    body = call_of(module, x, module.weight, y)
    assert CppKernels(body, {}).replace(body[3], lambda node: node) is None, "of unknown type"
    half = {"x": "torch.float16"}
    assert CppKernels(body, half).replace(body[3], lambda node: node) is None
    on_gpu = TritonKernels(body, half, Precision.STRICT)
    assert on_gpu.replace(body[3], lambda node: node) is not None
    cut = torch.empty(1, 3, 3, 4)[..., :3]
    body = call_of(module, x, module.weight, cut)
    assert CppKernels(body, {"x": "torch.float32"}).replace(body[3], lambda node: node) is None
    spreading = torch.nn.ConvTranspose2d(2, 3, 3, stride=2)
    x = torch.randn(1, 2, 5, 6)[..., :5]
    body = call_of(spreading, x, spreading.weight, spreading(x))
    assert CppKernels(body, {"x": "torch.float32"}).replace(body[3], lambda node: node) is None


CONVOLUTIONS = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([MODULES])

    def forward(self, *inputs):
        return tuple(part(x) for part, x in zip(self.parts, inputs))


def get_inputs():
    return [INPUTS]
"""
INTERPRETED = [
    *("depthwise", "transposed with steps", "transposed with holes", "transposed with odd holes"),
    "transposed, one tap, a longer result",
]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_convolutions_in_triton(write_task, interpreter: Interpreter, tmp_path: Path) -> None:
    chosen = [KINDS[kind] for kind in INTERPRETED]
    modules = ", ".join(f"torch.nn.{module}" for module, _ in chosen)
    inputs = ", ".join(f"torch.randn{size}" for _, size in chosen)
    task = write_task(CONVOLUTIONS.replace("MODULES", modules).replace("INPUTS", inputs))
    seed = make_seed(task, "cuda")
    candidate = seed.authored_candidate
    assert seed.library_calls == ("convolution",) and candidate is not None
    assert "torch.convolution" not in candidate.source
    assert candidate.source.count("convolve_apart[") == 1
    assert "LEAP=(1, 5, 2), INVERSE=(0, 3, 1)" in re.sub(r"\s+", " ", candidate.source)
    agreed = interpreter.compare(task, candidate.source, tmp_path)
    assert agreed == f"{len(chosen)} agree"
