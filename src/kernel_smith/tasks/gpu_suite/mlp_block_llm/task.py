"""The feed-forward half of a decoder layer: RMS normalisation, gated SiLU projection, output
projection and residual."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "network",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 9, "hidden": 130, "intermediate": 301},
        "decode": {"tokens": 16, "hidden": 4096, "intermediate": 14336, "dtype": "bfloat16"},
        "prefill": {"tokens": 2048, "hidden": 4096, "intermediate": 11008, "dtype": "bfloat16"},
        "odd": {"tokens": 333, "hidden": 1026, "intermediate": 2999},
    },
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, intermediate: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)

        def linear(outputs: int, inputs: int) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.randn(outputs, inputs, dtype=kind) * inputs**-0.5)

        self.norm = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=kind))
        self.gate_up = linear(2 * intermediate, hidden)
        self.down = linear(hidden, intermediate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = F.rms_norm(x, self.norm.shape, self.norm, eps=1e-6)
        gate, up = F.linear(normed, self.gate_up).chunk(2, dim=-1)
        return x + F.linear(F.silu(gate) * up, self.down)


def get_inputs(
    tokens: int = 16, hidden: int = 4096, intermediate: int = 14336, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(
    hidden: int = 4096, intermediate: int = 14336, dtype: str = "float32"
) -> list[object]:
    return [hidden, intermediate, dtype]
