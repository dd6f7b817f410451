"""Quantise activations to fp8 (e4m3) with one scale per 128 values of a token, as the block-scaled
products of DeepSeek-V3.1 need them. The bits are returned as bytes, with the scales, which are
powers of two, so that every result is exact in any precision."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "small": {"tokens": 13, "blocks": 7},
        "decode": {"tokens": 128, "blocks": 56, "dtype": "bfloat16"},
        "prefill": {"tokens": 8192, "blocks": 56, "dtype": "bfloat16"},
        "odd": {"tokens": 3001, "blocks": 31, "dtype": "float16"},
    },
    "library_calls": False,
}

BLOCK = 128


def power_of_two_scales(largest: torch.Tensor) -> torch.Tensor:
    """The least powers of two that bring these values to at most 448; 1 for zero."""
    mantissa, _ = torch.frexp(largest)
    # largest / mantissa is the least power of two above the largest; 448 is 7/8 of 512.
    scales = largest / mantissa / 512 * torch.where(mantissa > 0.875, 2, 1)
    return torch.where(largest > 0, scales, 1)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = x.to(torch.promote_types(x.dtype, torch.float32)).unflatten(-1, (-1, BLOCK))
        scales = power_of_two_scales(wide.abs().amax(dim=-1, keepdim=True))
        values = (wide / scales).to(torch.float8_e4m3fn)
        return values.flatten(-2).view(torch.uint8), scales.squeeze(-1)


def get_inputs(tokens: int = 128, blocks: int = 56, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    magnitude = torch.rand(tokens, blocks, 1, dtype=kind) * 4 + 0.1
    return [(torch.randn(tokens, blocks, BLOCK, dtype=kind) * magnitude).flatten(1)]
