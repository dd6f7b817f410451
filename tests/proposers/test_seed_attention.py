"""Kernels of our own for attention: what making a seed compares with the reference by itself."""

from __future__ import annotations

import pytest

from kernel_smith.proposers.seed import make_seed

ATTENTION = """
import torch

TASK = {"workloads": {"default": {}}}
attend = torch.nn.functional.scaled_dot_product_attention


class Model(torch.nn.Module):
    def forward(self, q, k, v, packed, mask, lone):
        heads = packed.view(2, 40, 3, 4, 16).permute(2, 0, 3, 1, 4)
        return (
            attend(q, k, v, attn_mask=mask, scale=0.5),
            attend(*heads, is_causal=True),
            attend(lone.double(), k.double(), v.double()),
        )


def get_inputs():
    mask = torch.randn(2, 1, 130, 101)
    mask[:, :, :, 50:] = float("-inf")  # a row of a later block sees nothing new
    shapes = (2, 3, 130, 24), (2, 3, 101, 24), (2, 3, 101, 24), (2, 40, 192)
    return [*(torch.randn(shape) for shape in shapes), mask, torch.randn(2, 3, 1, 24)]
"""

SHARED_KEYS = """
import torch

TASK = {"workloads": {"default": {}}}


class Model(torch.nn.Module):
    def forward(self, q, k, mask):
        attend = torch.nn.functional.scaled_dot_product_attention
        return torch.relu(attend(q, k, k, enable_gqa=True)), attend(q, q, q, attn_mask=mask)


def get_inputs():
    return [torch.randn(1, 4, 20, 16), torch.randn(1, 2, 20, 16), torch.rand(20, 20) < 0.9]
"""


@pytest.mark.slow
def test_attention_of_all_kinds_is_the_librarys(write_task) -> None:
    seed = make_seed(write_task(ATTENTION), "cpu")
    own = seed.authored_candidate
    source = seed.source if own is None else own.source
    assert "aten._scaled_dot_product" not in source
    assert source.count("kernels.attend_") == 3
    assert "double* y" in source


@pytest.mark.slow
def test_heads_that_share_keys_are_right_whoever_computes_them(write_task) -> None:
    seed = make_seed(write_task(SHARED_KEYS), "cpu")
    assert seed.compared == {"default": 1.0}
