"""Our Triton kernel for attention in a seed: what it computes, by the interpreter."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from interpreted import Interpreter

from kernel_smith.proposers.seed import make_seed
from kernel_smith.proposers.seed.attention_triton import choose_tiles
from kernel_smith.proposers.seed.library_calls import Attention, Operand
from kernel_smith.proposers.seed.own_triton import TritonKernels
from kernel_smith.records import Precision, Task

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")

CALL = """
assert_size_stride(q, (1, {heads}, {rows}, {width}), ({heads}, 1, 1, 1))
assert_size_stride(k, (1, 2, {keys}, {width}), (2, 1, 1, 1))
assert_size_stride(v, (1, 2, {keys}, {width}), (2, 1, 1, 1))
y = torch.ops.kernel_smith.attend.default(q, k, v, None, {causal}, 0.125, False)
"""


def launches(precision: Precision = Precision.TF32, **sizes: int) -> tuple[TritonKernels, str]:
    """What takes the place of attention over tensors of these sizes."""
    numbers = {"heads": 2, "rows": 512, "keys": 512, "width": 64, "causal": False} | sizes
    body = ast.parse(CALL.format(**numbers)).body
    own = TritonKernels(body, {"q": "torch.float32"}, precision)
    statements = own.replace(body[-1], lambda node: node)
    assert statements is not None
    return own, "\n".join(map(ast.unparse, statements))


def test_few_rows_share_out_the_keys_and_many_do_not() -> None:
    _, text = launches(rows=1, keys=5000)
    assert "attend_join[2," in text and "SPLITS=1," not in text
    _, text = launches(heads=512, rows=1, keys=5000)
    assert "attend_join" not in text, "programs are many by themselves"
    _, text = launches(rows=5000)
    assert "attend_join" not in text


def test_heads_that_share_keys_go_together_while_rows_are_few() -> None:
    _, text = launches(heads=16, rows=1, keys=5000)
    assert "SHARED_BY=8, STACKED=8" in text
    _, text = launches(heads=16, rows=100)
    assert "SHARED_BY=8, STACKED=1" in text


@pytest.mark.parametrize(
    ("precision", "said"), [(Precision.STRICT, "'ieee'"), (Precision.TF32, "'tf32'")]
)
def test_products_are_as_exact_as_the_task_wants_them(precision: Precision, said: str) -> None:
    _, text = launches(precision)
    assert f"PRECISION={said}" in text


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float16", "torch.bfloat16"])
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
@pytest.mark.parametrize("width", [8, 72, 128, 200, 1024])
def test_blocks_fit_into_shared_memory(width: int, precision: str, dtype: str) -> None:
    size = (4, 8, 1000, width)
    whole = Operand(ast.Constant(None), size, (1, 1, 1, 1))
    found = Attention(dtype, whole, whole, whole, whole, None, False, 1.0)
    tiles = choose_tiles(found, 1000, precision)
    element = 4 if dtype == "torch.float32" else 2
    once = tiles.rows * tiles.width + tiles.stages * tiles.keys * (tiles.width + tiles.values)
    assert once * element <= 227 << 10
    assert tiles.width >= min(width, 32) and tiles.values >= min(width, 256)


ATTENTION = """
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}
attend = torch.nn.functional.scaled_dot_product_attention


class Model(torch.nn.Module):
    def forward(self, q, k, v, packed, mask, wide):
        heads = packed.view(2, 40, 3, 4, 16).permute(2, 0, 3, 1, 4)
        few = k[:1].repeat_interleave(2, dim=1)
        return (
            attend(q, k, v, attn_mask=mask, scale=0.5),
            attend(*heads, is_causal=True).transpose(1, 2).reshape(2, 40, 64) * 2,
            attend(q[:1, :, :1].repeat(1, 2, 1, 1), few, few),
            attend(heads[0], heads[1, :, :2], heads[2, :, :2], enable_gqa=True, is_causal=True),
            attend(q, k, v, attn_mask=mask > 0),
            attend(wide[:, :, :20], wide, wide),
        )


def get_inputs():
    mask = torch.randn(2, 1, 19, 301)
    mask[:, :, :, 50:] = float("-inf")  # a row of a later block sees nothing new
    mask[:, :, 3] = float("-inf")  # and one sees nothing at all
    shapes = (2, 2, 19, 24), (2, 2, 301, 24), (2, 2, 301, 24), (2, 40, 192)
    return [*(torch.randn(shape) for shape in shapes), mask, torch.randn(1, 1, 70, 530)]
"""
SPELLED = """
import math
import torch

TASK = {"workloads": {"default": {}}, "precision": "tf32"}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.ones(64, 64).tril().view(1, 1, 64, 64))
        self.drop = torch.nn.Dropout(0.0)
        self.attention = torch.nn.MultiheadAttention(32, 2)

    def forward(self, q, k, v, added):
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.seen[:, :, :33, :50] == 0, float("-inf"))
        y = self.drop(torch.softmax(scores, dim=-1)) @ v
        z = torch.softmax(torch.matmul(q, k.transpose(2, 3)) / 4 + added, 3) @ v
        x = q[:, 0].repeat(1, 1, 2)[:, :, :32].transpose(0, 1)
        # Few rows: the interpreter takes seconds for a sum over some dozens of them.
        shown = torch.softmax(q[:1, :1, :2] @ k[:1, :1].transpose(-2, -1), -1)
        weighed = shown @ v[:1, :1]
        return y.transpose(1, 2).flatten(2), z, self.attention(x, x, x)[0], weighed, shown


def get_inputs():
    shapes = (2, 3, 33, 24), (2, 3, 50, 24), (2, 3, 50, 24), (33, 50)
    return [torch.randn(shape) for shape in shapes]
"""


@pytest.mark.slow
@needs_triton
def test_attention_of_all_kinds_is_the_librarys(
    write_task, interpreter: Interpreter, tmp_path: Path
) -> None:
    task = write_task(ATTENTION)
    candidate = make_seed(task, "cuda").authored_candidate
    assert candidate is not None
    assert candidate.source.count("attend[") == 6 and "attend_join[" in candidate.source
    assert "bmm" not in candidate.source and "scaled_dot" not in candidate.source
    assert interpreter.compare(task, candidate.source, tmp_path) == "6 agree"


@pytest.fixture
def spelled(write_task) -> tuple[Task, str]:
    """Attention without its name, and the program that is made of it."""
    task = write_task(SPELLED)
    candidate = make_seed(task, "cuda").authored_candidate
    assert candidate is not None
    return task, candidate.source


@pytest.mark.slow
@needs_triton
def test_attention_that_is_spelled_out_is_found(spelled: tuple[Task, str]) -> None:
    """But not where its weights are wanted as well."""
    _, source = spelled
    assert source.count("attend[") == 3
    assert "mm(" not in source


@pytest.mark.slow
@pytest.mark.sweep
@needs_triton
def test_attention_that_was_found_is_right(
    spelled: tuple[Task, str], interpreter: Interpreter, tmp_path: Path
) -> None:
    assert interpreter.compare(*spelled, tmp_path) == "5 agree"
