"""Gate with SiLU, then RMS normalisation within groups of channels: the end of a Mamba-2 or
Nemotron-H mixer, before its output projection."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "small": {"tokens": 11, "channels": 1032, "groups": 8},
        "decode": {"tokens": 128, "channels": 8192, "groups": 8, "dtype": "bfloat16"},
        "prefill": {"tokens": 8192, "channels": 4096, "groups": 1, "dtype": "bfloat16"},
        "odd": {"tokens": 3001, "channels": 5160, "groups": 5},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, groups: int, dtype: str) -> None:
        super().__init__()
        self.groups = groups
        kind = getattr(torch, dtype)
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(channels, dtype=kind))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        gated = x.to(wide) * F.silu(gate.to(wide))
        grouped = gated.unflatten(-1, (self.groups, -1))
        inverse = torch.rsqrt(grouped.square().mean(dim=-1, keepdim=True) + 1e-5)
        return ((grouped * inverse).flatten(-2) * self.weight).to(x.dtype)


def get_inputs(
    tokens: int = 128, channels: int = 8192, groups: int = 8, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    return [torch.randn(tokens, channels, dtype=kind), torch.randn(tokens, channels, dtype=kind)]


def get_init_inputs(channels: int = 8192, groups: int = 8, dtype: str = "float32") -> list[object]:
    return [channels, groups, dtype]
