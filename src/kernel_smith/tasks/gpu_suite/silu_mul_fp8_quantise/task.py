"""SiLU of the gate times the up values, quantised at once to fp8 (e4m3) with power-of-two scales
per 128 values: what lies between the two products of a DeepSeek-V3.1 expert. Bits and scales are
returned."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "quantisation",
    "workloads": {
        "small": {"tokens": 11, "blocks": 5},
        "decode": {"tokens": 256, "blocks": 16, "dtype": "bfloat16"},
        "prefill": {"tokens": 8192, "blocks": 16, "dtype": "bfloat16"},
        "odd": {"tokens": 2999, "blocks": 13},
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
        gate, up = x.to(torch.promote_types(x.dtype, torch.float32)).chunk(2, dim=-1)
        product = (F.silu(gate) * up).unflatten(-1, (-1, BLOCK))
        scales = power_of_two_scales(product.abs().amax(dim=-1, keepdim=True))
        values = (product / scales).to(torch.float8_e4m3fn)
        return values.flatten(-2).view(torch.uint8), scales.squeeze(-1)


def get_inputs(tokens: int = 256, blocks: int = 16, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    magnitude = torch.rand(tokens, 2 * blocks, 1, dtype=kind) * 3 + 0.2
    return [(torch.randn(tokens, 2 * blocks, BLOCK, dtype=kind) * magnitude).flatten(1)]
