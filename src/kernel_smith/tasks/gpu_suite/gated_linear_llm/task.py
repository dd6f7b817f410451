"""Gate and up projection with one weight, then SiLU of the gate times the rest: the first half of a
Llama-style feed-forward layer."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "fused-matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 9, "hidden": 200, "intermediate": 301},
        "decode": {"tokens": 32, "hidden": 4096, "intermediate": 14336, "dtype": "bfloat16"},
        "prefill": {"tokens": 2048, "hidden": 4096, "intermediate": 14336, "dtype": "bfloat16"},
        "odd": {"tokens": 517, "hidden": 2050, "intermediate": 5001},
    },
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, intermediate: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        weight = torch.randn(2 * intermediate, hidden, dtype=kind) * hidden**-0.5
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = F.linear(x, self.weight).chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs(
    tokens: int = 32, hidden: int = 4096, intermediate: int = 14336, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(
    hidden: int = 4096, intermediate: int = 14336, dtype: str = "float32"
) -> list[object]:
    return [hidden, intermediate, dtype]
