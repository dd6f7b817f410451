"""Quantise activations to int8 with one scale per token, before the int8 products of W8A8 serving;
integers and scales are returned. Scales are powers of two, so that every result is exact in any
precision."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "small": {"tokens": 9, "hidden": 1003},
        "decode": {"tokens": 64, "hidden": 8192, "dtype": "float16"},
        "prefill": {"tokens": 8192, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 1021, "hidden": 5003},
    },
    "library_calls": False,
}


def power_of_two_scales(largest: torch.Tensor) -> torch.Tensor:
    """The least powers of two that bring these values to at most 127; 1 for zero."""
    mantissa, _ = torch.frexp(largest)
    # largest / mantissa is the least power of two above the largest.
    scales = largest / mantissa / 128 * torch.where(mantissa > 127 / 128, 2, 1)
    return torch.where(largest > 0, scales, 1)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scales = power_of_two_scales(wide.abs().amax(dim=-1, keepdim=True))
        return torch.round(wide / scales).to(torch.int8), scales


def get_inputs(tokens: int = 64, hidden: int = 8192, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    magnitude = torch.rand(tokens, 1, dtype=kind) * 4 + 0.1
    return [torch.randn(tokens, hidden, dtype=kind) * magnitude]
