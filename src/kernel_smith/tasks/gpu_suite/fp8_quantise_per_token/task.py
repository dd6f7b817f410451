"""Quantise activations to fp8 (e4m3) with one scale per token, before the fp8 products of a server.
The bits of the fp8 values are returned as bytes, with the scales. Scales are powers of two, so that
every result is exact in any precision."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "small": {"tokens": 9, "hidden": 1003},
        "decode": {"tokens": 128, "hidden": 7168, "dtype": "bfloat16"},
        "prefill": {"tokens": 8192, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 1021, "hidden": 5003, "dtype": "float16"},
    },
    "library_calls": False,
}


def power_of_two_scales(largest: torch.Tensor) -> torch.Tensor:
    """The least powers of two that bring these values to at most 448; 1 for zero."""
    mantissa, _ = torch.frexp(largest)
    # largest / mantissa is the least power of two above the largest; 448 is 7/8 of 512.
    scales = largest / mantissa / 512 * torch.where(mantissa > 0.875, 2, 1)
    return torch.where(largest > 0, scales, 1)


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scales = power_of_two_scales(wide.abs().amax(dim=-1, keepdim=True))
        values = (wide / scales).to(torch.float8_e4m3fn)
        return values.view(torch.uint8), scales


def get_inputs(tokens: int = 128, hidden: int = 7168, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    magnitude = torch.rand(tokens, 1, dtype=kind) * 4 + 0.1
    return [torch.randn(tokens, hidden, dtype=kind) * magnitude]
