"""What follows a product or a convolution of ours, done by the same kernel."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from interpreted import Interpreter

from kernel_smith.proposers.seed import make_seed
from kernel_smith.proposers.seed.templates import template
from kernel_smith.proposers.seed.triton_epilogues import fuse_epilogues

FOLLOWED = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = torch.nn.Conv2d(3, 20, 3)
        self.deep = torch.nn.ConvTranspose3d(2, 3, 2, stride=2)
        self.linear = torch.nn.Linear(21, 18, bias=False)
        self.scale = torch.nn.Parameter(torch.randn(20, 1, 1))
        self.one = torch.nn.Parameter(torch.randn(1))

    def forward(self, x, y, z, w):
        scaled = torch.nn.functional.gelu(self.flat(x)) * self.scale + self.one
        rows = self.linear(z).relu() + w
        return scaled, self.deep(y).exp(), rows, (z.T @ z).sigmoid()


def get_inputs():
    sizes = [(2, 3, 5, 6), (1, 2, 2, 3, 2), (19, 21), (19, 18)]
    return [torch.randn(size) for size in sizes]
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_what_follows_is_done_before_the_result_is_stored(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    task = write_task(FOLLOWED)
    candidate = make_seed(task, "cuda").authored_candidate
    assert candidate is not None
    assert candidate.source.count("_finish(sums, ") == 4
    assert "def convolve(" not in candidate.source, "what nobody launches is left out"
    assert "triton_poi_fused_add" not in candidate.source
    assert interpreter.compare(task, candidate.source, tmp_path) == "4 agree"


AFTER = """
@triton.jit
def triton_poi_fused_add_7(in_out_ptr0, in_ptr0, xnumel: tl.constexpr, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x2 = xindex
    x0 = PLACE
    tmp0 = tl.load(in_out_ptr0 + (x2), xmask)
    tmp1 = tl.load(in_ptr0 + (x0), MASK)
    tmp2 = tmp0 + tmp1
    tl.store(in_out_ptr0 + (x2), tmp2, xmask)
"""
BODY = """
buf0 = torch.empty(40, 48, dtype=torch.float32, device=x.device)
multiply[4, 1](a, b, buf0, None, COLUMNS=48, C_RIGHT=1)
BETWEEN
buf1 = buf0
triton_poi_fused_add_7[8,](buf1, given, 1920, XBLOCK=256)
return buf1
"""


def fused(
    between: str = "del b",
    place: str = "xindex % 48",
    mask: str = "None",
    after: str = AFTER,
    body: str = BODY,
) -> tuple[str, dict[str, str]]:
    """What becomes of a product and an addition: the statements, and the texts that are made."""
    statements = ast.parse(body.replace("BETWEEN", between)).body
    texts = {
        "multiply": template("product_triton.txt").strip(),
        "triton_poi_fused_add_7": after.replace("PLACE", place).replace("MASK", mask).strip(),
    }
    made = fuse_epilogues(statements, texts)
    return "\n".join(map(ast.unparse, statements)), made


def test_a_launch_takes_what_the_one_after_it_was_given() -> None:
    body, made = fused()
    assert "multiply_7[4, 1](a, b, buf0, None, given, COLUMNS=48, C_RIGHT=1)" in body
    assert "triton_poi" not in body
    text = made["multiply_7"]
    assert "def multiply_7(a, b, c, bias, in_ptr0, ROWS" in text
    assert "tl.load(in_ptr0 + x0, cmask)" in text, "of columns once for all rows"
    _, made = fused(place="xindex // 48")
    assert "tl.load(in_ptr0 + x0, xmask)" in made["multiply_7"]
    _, made = fused(body=BODY.replace("C_RIGHT=1", "C_RIGHT=40"))
    assert "tl.load(in_ptr0 + x0, xmask)" in made["multiply_7"], "columns lie elsewhere"
    _, made = fused(place="xindex", mask="xmask & (x0 < 5)")
    assert "tl.load(in_ptr0 + x0, xmask & (x0 < 5) & xmask)" in made["multiply_7"]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param("given = other * 2", id="what it is given is made later"),
        pytest.param("fill[1,](given)", id="what it is given is written later"),
        pytest.param("view = torch.as_strided(given, (5,), (1,))\nfill[1,](view)", id="by a view"),
        pytest.param("look[1,](buf0)", id="somebody reads the result before"),
    ],
)
def test_a_launch_whose_work_cannot_be_done_earlier_stays(between: str) -> None:
    body, made = fused(between)
    assert not made
    assert "multiply[4, 1]" in body and "triton_poi_fused_add_7[8,]" in body


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("in_out_ptr0 + (x2), x", "in_out_ptr0 + (x0), x", id="of other elements"),
        pytest.param("tmp2 = tmp0", "tmp2 = tl.load(in_out_ptr0 + (x0))", id="of others as well"),
        pytest.param("tmp2 = tmp0", "tl.store(out_ptr1 + (x2), tmp0)\n    tmp2 = tmp0", id="twice"),
        pytest.param("tmp2 = tmp0", "tmp2 = tl.full([XBLOCK], 1, tl.float32)", id="by blocks"),
    ],
)
def test_a_kernel_that_does_more_stays(old: str, new: str) -> None:
    assert old in AFTER
    _, made = fused(after=AFTER.replace(old, new))
    assert not made


def test_a_kernel_that_follows_two_results_is_fused_with_those_that_lie_alike() -> None:
    first = BODY.replace("return buf1", "")
    second = first.replace("COLUMNS=48", "COLUMNS=40").replace("buf", "alt")
    body, made = fused(body=first + second)
    assert list(made) == ["multiply_7"]
    assert "multiply_7[4, 1](a, b, buf0" in body and "multiply[4, 1](a, b, alt0" in body
    assert "triton_poi_fused_add_7[8,](alt1, given" in body
