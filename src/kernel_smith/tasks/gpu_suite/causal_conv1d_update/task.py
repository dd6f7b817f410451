"""One decoding step of a short causal convolution with SiLU: the window of each channel moves on by
the new token; output and new window are returned. Mamba and Gated DeltaNet servers run it."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "convolution",
    "workloads": {
        "small": {"batch": 3, "channels": 1001},
        "decode": {"batch": 256, "channels": 8192, "dtype": "bfloat16"},
        "single": {"batch": 1, "channels": 8192, "dtype": "bfloat16"},
        "odd": {"batch": 77, "channels": 6145},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, taps: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(torch.randn(channels, taps, dtype=kind))
        self.bias = torch.nn.Parameter(torch.randn(channels, dtype=kind))

    def forward(self, x: torch.Tensor, window: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        full = torch.cat([window, x[..., None]], dim=-1)
        wide = full.to(torch.promote_types(x.dtype, torch.float32))
        mixed = (wide * self.weight).sum(dim=-1) + self.bias
        return F.silu(mixed).to(x.dtype), full[..., 1:].contiguous()


def get_inputs(
    batch: int = 256, channels: int = 8192, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    return [torch.randn(batch, channels, dtype=kind), torch.randn(batch, channels, 3, dtype=kind)]


def get_init_inputs(channels: int = 8192, dtype: str = "float32") -> list[object]:
    return [channels, 4, dtype]
