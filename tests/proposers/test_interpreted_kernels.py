"""What the interpreter of Triton kernels computes where its own functions would not do."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from interpreted import Interpreter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton"),
]

CAST = """
import sys

import torch
import triton
import triton.language as tl

from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels

interpret_kernels(disarmed=False)


@triton.jit
def cast(x, y, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < size)
    tl.store(y + i, v.to(y.dtype.element_ty), mask=i < size)


x = torch.cat([torch.randn(2000) * 2.0**k for k in (-12, 0, 3)])
x = torch.cat([x, torch.tensor([0.0, -0.0, 1.999, -31.9, 1e9, -1e9, float("nan")])])
for name in sys.argv[1:]:
    dtype = getattr(torch, name)
    y = torch.empty(x.numel(), dtype=dtype)
    cast[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    most = torch.finfo(dtype).max if dtype.itemsize == 1 else torch.inf
    right = x.clamp(-most, most).to(dtype)
    if (y.view(torch.int8) == right.view(torch.int8)).all():
        print(name)
"""


EXTREMES = """
import torch
from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels
interpret_kernels(disarmed=False)
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers


@triton.jit
def extremes(x, y, BLOCK: tl.constexpr):
    v = tl.load(x + tl.arange(0, 4)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(y + tl.arange(0, 4), triton_helpers.max2(v, 1))
    tl.store(y + 4 + tl.arange(0, 4), triton_helpers.min2(v, 1))
    tl.store(y + 8 + tl.arange(0, BLOCK), triton_helpers.max2(v, 0))


for dtype in (torch.float32, torch.float16, torch.int32):
    x = (torch.randn(4, 8) * 9).to(dtype)
    if dtype.is_floating_point:
        x[1, 3], x[2, 0] = float("nan"), float("-inf")
    y = torch.empty(16, dtype=dtype)
    extremes[(1,)](x, y, BLOCK=8)
    right = torch.cat([x.amax(1), x.amin(1), x.amax(0)])
    torch.testing.assert_close(y, right, rtol=0, atol=0, equal_nan=True)
    print(dtype)
"""


# Kernels have to be in a file.
RUN = """
import json, runpy, sys
path, *sys.argv[1:] = json.load(sys.stdin)
runpy.run_path(path)
"""
DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16"]


def lines(interpreter: Interpreter, folder: Path, script: str, *words: str) -> list[str]:
    """What a script prints."""
    path = folder / "script.py"
    path.write_text(script)
    done = interpreter.run(RUN, folder, json.dumps([str(path), *words]))
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_few_bits_are_rounded_as_a_gpu_does(interpreter: Interpreter, tmp_path: Path) -> None:
    assert lines(interpreter, tmp_path, CAST, *DTYPES) == DTYPES


def test_extremes_of_the_compilers_helpers_are_torchs(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    """Whether numpy finds them at once or the interpreter compares element by element."""
    assert len(lines(interpreter, tmp_path, EXTREMES)) == 3
